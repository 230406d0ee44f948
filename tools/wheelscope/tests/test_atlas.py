"""`wheelscope atlas` on an index on loopback: verdicts, what is kept between runs, and hostile names on its pages."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sample_wheels
from package_index import Index
from program import compiled, run, valid

pytestmark = [
    pytest.mark.skipif(sample_wheels.MACHINE != "x86_64", reason="the atlas is of x86-64")
]
TAG = "cp311-cp311-manylinux_2_28_x86_64"
SAMPLE = f"sample-1.0-{TAG}.whl"
SCRIPT = "<script>alert(1)</script>"
Atlas = Callable[..., tuple[dict[str, Any], Path]]


def link(folder: Path, source: str, *flags: str | Path) -> bytes:
    return compiled(folder / "code.so", source, *flags, compiler="g++").read_bytes()


def add_torches(index: Index, folder: Path) -> None:
    """Adds two versions of torch: c10::grown() came with the second."""
    both = "struct Tensor; void kept() {} void take(Tensor*) {}"
    for version, functions in (("2.9.1", both), ("2.10.0", f"{both} void grown() {{}}")):
        library = link(folder, f"namespace c10 {{ {functions} }}", "-Wl,-soname,libtorch_cpu.so")
        name = f"torch-{version}-{TAG}.whl"
        index.offer(name, {"torch/lib/libtorch_cpu.so": library})


@pytest.fixture
def atlas(index: Index, settings: dict[str, str], tmp_path: Path) -> Atlas:
    add_torches(index, tmp_path)

    def ask(
        *names: str, code: int = 0, options: tuple[str, ...] = ()
    ) -> tuple[dict[str, Any], Path]:
        folder = tmp_path / "the atlas"
        (tmp_path / "list.txt").write_text("# projects\n" + "\n".join(names))
        words = [tmp_path / "list.txt", "-o", folder, "--index", index.simple, *options]
        done = run("atlas", *words, code=code, env=settings, timeout=100)
        if "--sarif" in options:
            return json.loads(done.stdout)["runs"][0], folder
        return valid(json.loads((folder / "atlas.json").read_text()))["atlas"], folder

    return ask


def add_sample(
    index: Index,
    folder: Path,
    calls: str | dict[str, str] = "c10::grown()",
    requires: str = "torch>=2.9",
) -> None:
    """Adds a wheel with a module, or one in each folder, that calls functions which nothing it is linked to has."""
    torch = compiled(folder / "libtorch_cpu.so", "", "-Wl,-soname,libtorch_cpu.so", compiler="g++")
    members = {}
    for place, call in ({"": calls} if isinstance(calls, str) else calls).items():
        source = f"""
        namespace c10 {{ struct Thing; struct Tensor; void grown(); void kept(); void take(Tensor*); }}
        namespace another {{ void use(c10::Thing*); }} void THPThing(c10::Thing*);
        extern "C" void *PyInit_sample() {{ {call}; return 0; }}"""
        members[f"{place}sample.so"] = link(folder, source, "-Wl,--no-as-needed", torch)
    index.offer(SAMPLE, members, requires and f"Requires-Dist: {requires}\n")


def verdicts(document: dict[str, Any]) -> dict[tuple[str, str], str]:
    [project] = document["projects"]
    return {
        (cell["torch"], cell["cuda"]): cell["verdict"] for cell in project["releases"][0]["cells"]
    }


def test_symbols_of_each_torch_decide(atlas: Atlas, index: Index, tmp_path: Path) -> None:
    add_sample(index, tmp_path)
    document, folder = atlas("Sample")
    found = verdicts(document)
    assert {verdict for (torch, _), verdict in found.items() if torch == "2.9"} == {"fails"}
    assert {verdict for (torch, _), verdict in found.items() if torch == "2.10"} == {"works"}
    release = document["projects"][0]["releases"][0]
    assert [claim["id"] for claim in release["false_claims"]] == ["torch"]
    assert release["files"][0]["cxx_symbols_first"] == ["c10::grown()"]
    page = (folder / "project/sample.html").read_text()
    assert "c10::grown(), which torch 2.9.1" in page
    assert 'href="project/sample.html"' in (folder / "index.html").read_text()


OLD, NEW = "sample/torch-2.9/", "sample/torch-2.10/"


@pytest.mark.parametrize(
    ("calls", "requirement", "verdict"),
    [
        # A symbol is torch's by its own namespace.
        ("another::use(0)", "torch", "works"),
        ("THPThing(0)", "torch", "fails"),
        # A library of tensors is for one layout: it was built before or after 2.13, which moved
        # fields. One library for each torch is enough.
        ("c10::take(0)", "torch", "depends"),
        ("c10::take(0)", "torch<2.13", "works"),
        ({OLD: "c10::take(0)", NEW: "c10::take(0)"}, "torch", "works"),
        ({OLD: "c10::kept()", NEW: "c10::grown()"}, "torch", "works"),
    ],
)
def test_what_a_library_calls(
    atlas: Atlas,
    index: Index,
    tmp_path: Path,
    calls: str | dict[str, str],
    requirement: str,
    verdict: str,
) -> None:
    add_sample(index, tmp_path, calls, requirement)
    assert set(verdicts(atlas("sample")[0]).values()) == {verdict}


@pytest.mark.parametrize(
    ("calls", "requires", "claims"),
    [("c10::grown()", "torch>=2.10", []), ("c10::kept()", "", ["requirement"])],
)
def test_false_claims(
    atlas: Atlas, index: Index, tmp_path: Path, calls: str, requires: str, claims: list[str]
) -> None:
    add_sample(index, tmp_path, calls, requires)
    [project] = atlas("sample")[0]["projects"]
    assert [claim["id"] for claim in project["releases"][0]["false_claims"]] == claims


@pytest.mark.parametrize(
    ("torch", "metadata", "found"),
    [
        ("newest", "torch", []),
        (">=2.9,<2.10", "torch>=2.9", ["torch", "default"]),  # needs a symbol of 2.10
        ("==2.9.*", "torch>=2.10", ["no-wheel"]),
        (">=2.0", "torch>=2.10", ["no-wheel"]),
    ],
)
def test_a_maintainer_is_told_what_to_act_on(
    atlas: Atlas, index: Index, tmp_path: Path, torch: str, metadata: str, found: list[str]
) -> None:
    add_sample(index, tmp_path, requires=metadata)
    said, _ = atlas("sample", code=1 if found else 0, options=("--torch", torch, "--sarif"))
    assert [result["ruleId"] for result in said["results"]] == found
    assert all("2.9" in result["message"]["text"] for result in said["results"])


@pytest.mark.parametrize(("torch", "code"), [("9", 2), (">=9", 3)])
def test_a_torch_that_is_none(atlas: Atlas, torch: str, code: int) -> None:
    with pytest.raises(FileNotFoundError):  # nothing is written
        atlas("sample", code=code, options=("--torch", torch))


def test_what_a_new_torch_broke_forecasts_the_next(
    atlas: Atlas, index: Index, tmp_path: Path
) -> None:
    add_sample(index, tmp_path, "c10::kept()")
    document, folder = atlas("sample")
    [project] = document["projects"]
    [file] = project["releases"][0]["files"]
    assert (file["known_symbols"], file["lacking"]) == (1, {"2.9": 0, "2.10": 0})
    assert project["releases"][0]["forecast"] == {"loaded": 1, "broke": 0, "expected": False}
    assert document["forecast"]["classes"][0] == {"symbols": 1, "loaded": 1, "broke": 0}
    assert "0 of 1 did not load" in (folder / "project/sample.html").read_text()


def test_only_what_is_new_is_read(atlas: Atlas, index: Index, tmp_path: Path) -> None:
    add_sample(index, tmp_path)
    first = atlas("sample")[0]
    index.asked.clear()
    assert atlas("sample")[0] == first
    assert [path for path, _ in index.asked if path.endswith(".whl")] == []
    add_sample(index, tmp_path, "c10::kept()")
    assert set(verdicts(atlas("sample")[0]).values()) == {"works"}


def test_sources_alone_are_said_to_be(atlas: Atlas, index: Index) -> None:
    index.add("sample-1.0.tar.gz", b"")
    document, _ = atlas("sample")
    assert set(verdicts(document).values()) == {"sdist"}


def test_one_project_that_cannot_be_read_does_not_end_the_others(
    atlas: Atlas, index: Index, tmp_path: Path
) -> None:
    add_sample(index, tmp_path)
    document, folder = atlas("absent", "sample", code=3)
    assert [bool(project["problem"]) for project in document["projects"]] == [True, False]
    assert "404" in (folder / "project/absent.html").read_text()


def test_what_an_index_says_is_escaped(atlas: Atlas, index: Index, tmp_path: Path) -> None:
    add_sample(index, tmp_path, requires=f'torch>=2.9; platform_version != "{SCRIPT}"')
    document, folder = atlas("sample")
    assert SCRIPT in json.dumps(document)
    pages = [page.read_text() for page in folder.rglob("*.html")]
    assert len(pages) == 2
    assert not any(SCRIPT in page for page in pages)
    assert any("&lt;script&gt;" in page for page in pages)


@pytest.mark.parametrize("name", ["../escape", "<b>", "a b=1"])
def test_a_word_that_is_no_name_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text(name)
    done = run("atlas", tmp_path / "list.txt", "-o", tmp_path / "out", code=3)
    assert "is no project's name" in done.stderr
    assert not (tmp_path / "out").exists()


def test_pre_releases_count_if_they_are_asked_for(
    atlas: Atlas, index: Index, tmp_path: Path
) -> None:
    add_sample(index, tmp_path)
    index.offer(f"sample-2.0rc1-{TAG}.whl", {"sample.py": b""})
    for options, newest in {(): "1.0", ("--pre",): "2.0rc1"}.items():
        document, _ = atlas("sample", options=options)
        assert document["projects"][0]["releases"][0]["version"] == newest

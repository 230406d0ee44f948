"""Tests the static index: pip takes the right file from it, hash checked, local versions included; uv takes the right
variant. A release is added to earlier ones completely or not at all."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import pytest
from demo_wheel import make_wheel, serving
from wheelyard.problem import Problem
from wheelyard.tools import static_index, wheelscope


@contextmanager
def index_of(folder: Path, wheels: list[Path]) -> Iterator[str]:
    """Yields the address of an index of wheels in a folder."""
    static_index.append(folder, "demo_ext", wheels)
    with serving(folder) as url:
        yield url


def pip_download(url: str, requirement: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pip", "download", "--isolated", "--no-deps", "--no-cache-dir"]
    where = ["--index-url", url, "--dest", str(folder)]
    return subprocess.run([*command, *where, requirement], capture_output=True, text=True)


def test_a_changed_file_is_refused_by_its_hash(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path)
    with index_of(tmp_path, [wheel]) as url:
        wheel.write_bytes(wheel.read_bytes() + b"\0")
        done = pip_download(url, "demo_ext", tmp_path / "got")
    assert done.returncode != 0
    assert "DO NOT MATCH THE HASHES" in done.stderr


FORCE = "NV_VARIANT_PROVIDER_FORCE"
TARGETS = ("7.0+PTX", "8.0", "8.6", "9.0+PTX", "12.0")


@pytest.fixture(scope="module")
def variants(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """Yields a folder with a wheel, its variants and their index, and its address."""
    folder = tmp_path_factory.mktemp("variants")
    wheel = make_wheel(folder, gpus=TARGETS)
    for gpu in (target.removesuffix("+PTX") for target in TARGETS):
        label = "sm" + gpu.replace(".", "")
        wheelscope.thin(wheel, gpu, label, folder, folder / "log")
    with index_of(folder, sorted(folder.glob("*.whl"))) as url:
        yield folder, url


# As `plan` says: the nearest earlier target of the same major version, for any driver.
TAKEN = {
    "7.0": "sm70", "7.5": "sm70", "8.0": "sm80", "8.6": "sm86", "8.9": "sm86", "9.0": "sm90",
    "10.0": "", "10.3": "", "11.0": "", "12.0": "sm120", "12.1": "sm120", "6.1": "", "": "",
}  # fmt: skip


@pytest.mark.parametrize("driver", ["12.8", "13.0"])
@pytest.mark.parametrize("gpu", TAKEN)
def test_uv_takes_the_variant_of_a_gpu(
    variants: tuple[Path, str], tmp_path: Path, gpu: str, driver: str
) -> None:
    found, url = tmp_path / "found", variants[1]
    command = ["uv", "pip", "install", "--preview-features", "wheel-variants", "--no-deps"]
    where = ["--no-cache", "--index-url", url, "--python", sys.executable, "--target", str(found)]
    forced = {f"{FORCE}_SM_ARCH": gpu, f"{FORCE}_CUDA_DRIVER_VERSION": driver} if gpu else {}
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {"HOME": str(tmp_path), "PATH": path, **forced}
    done = subprocess.run(
        [*command, *where, "demo_ext"], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    said = [json.loads(f.read_text()) for f in found.glob("*.dist-info/variant.json")]
    assert [list(one["variants"]) for one in said] == [[TAKEN[gpu]]] * bool(TAKEN[gpu])


def test_pip_takes_the_wheel_that_is_no_variant(variants: tuple[Path, str], tmp_path: Path) -> None:
    folder, url = variants
    done = pip_download(url, "demo_ext", tmp_path)
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.iterdir()
    assert wheel.read_bytes() == (folder / wheel.name).read_bytes()
    assert "-sm" not in wheel.name


def uv_download(url: str, requirement: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [
        "uv",
        "pip",
        "install",
        "--no-deps",
        "--no-cache",
        "--no-config",
        "--target",
        str(folder),
    ]
    where = ["--python", sys.executable, "--index-url", url, requirement]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    told = {"PATH": path, "HOME": str(folder)}
    return subprocess.run([*command, *where], env=told, capture_output=True, text=True)


def releases(folder: Path) -> list[list[Path]]:
    """Makes two releases of two wheels each; the second requires a Python that nobody has."""
    return [
        [make_wheel(folder / v, version=f"{v}+{local}", pythons=pythons) for local in LOCALS]
        for v, pythons in (("1.0", ">=3.9"), ("1.1", ">=3.99"))
    ]


LOCALS = ("cu130torch2.9", "cu132torch2.15")


def tree(folder: Path) -> dict[str, bytes]:
    return {str(f.relative_to(folder)): f.read_bytes() for f in folder.rglob("*") if f.is_file()}


def test_a_release_is_added_to_earlier_ones(tmp_path: Path) -> None:
    site = tmp_path / "my site"
    first, second = releases(tmp_path)
    assert static_index.append(site, "demo_ext", first) == [f.name for f in first]
    before = tree(site)
    static_index.append(site, "demo_ext", second)
    after = tree(site)
    assert {n: d for n, d in after.items() if n in before and n.endswith(".whl")} == {
        n: d for n, d in before.items() if n.endswith(".whl")
    }
    with serving(site) as url:
        for get in (pip_download, uv_download):
            for old in first:
                part = f"{url}{static_index.index_of_file(old.name)}/"
                done = get(part, "demo-ext", tmp_path / get.__name__ / old.stem)
                assert done.returncode == 0, done.stderr  # 1.0: 1.1 is not for this Python
                (found,) = (tmp_path / get.__name__ / old.stem).glob("demo_ext-*")
                assert found.name.startswith(old.name.partition("-py3")[0])
            refused = get(f"{url}cu130-torch2.9/", "demo-ext==1.1", tmp_path / "no")
            assert "3.99" in refused.stderr, refused.stderr
    page = (site / "simple/index.html").read_text()
    assert page.index("<td>2.9</td><td>cu130</td>") < page.index("<td>2.15</td><td>cu132</td>")
    for part in ("cu130-torch2.9", "cu132-torch2.15"):
        listing = json.loads((site / f"simple/{part}/demo-ext/index.json").read_text())
        assert [file["requires-python"] for file in listing["files"]] == [">=3.9", ">=3.99"]
        assert listing["versions"] == [f"{v}+{part.replace('-', '')}" for v in ("1.0", "1.1")]
    assert static_index.append(site, "demo_ext", second) == []
    assert tree(site) == after


def test_another_file_of_the_same_name_is_refused(tmp_path: Path) -> None:
    site = tmp_path / "site"
    first, _ = releases(tmp_path)
    static_index.append(site, "demo_ext", first)
    before = tree(site)
    new = make_wheel(tmp_path / "new", version="2.0+cu130torch2.9")
    other = make_wheel(tmp_path / "other", version="1.0+cu132torch2.15", text="other")
    for address in ("", "https://host.example/files"):
        with pytest.raises(Problem, match="with other bytes; a published file cannot change"):
            static_index.append(site, "demo_ext", [new, other], address)
        assert tree(site) == before
    (site / first[0].name).unlink()  # only the page still knows it
    with pytest.raises(Problem, match="with other bytes"):
        static_index.append(
            site, "demo_ext", [make_wheel(tmp_path / "x", version="1.0+cu130torch2.9", text="y")]
        )


THEIRS = """<!DOCTYPE html>
<html><body><h1>Links for demo-ext</h1>
<A HREF="https://host.example/demo_ext-0.9-py3-none-any.whl#sha256={digest}" data-yanked="why &amp; when">
demo_ext-0.9-py3-none-any.whl</A><br/>
</body></html>
"""


def test_what_another_program_wrote_stays(tmp_path: Path) -> None:
    site, wheel = tmp_path / "site", make_wheel(tmp_path, version="1.0")
    page = site / "simple/demo-ext/index.html"
    page.parent.mkdir(parents=True)
    theirs = THEIRS.format(digest="0" * 64)
    page.write_text(theirs)
    root = site / "simple/index.html"
    root.write_text('<html><body><a href="/simple/other/">other</a></body></html>')
    static_index.append(site, "demo_ext", [wheel])
    start, end = theirs[: theirs.index("</body>")], theirs[theirs.index("</body>") :]
    assert page.read_text().startswith(start)
    assert page.read_text().endswith(end)
    assert not page.with_name("index.json").exists(), "it would hide what only the page has"
    assert '<a href="/simple/other/">other</a><a href="demo-ext/">' in root.read_text()
    with serving(site) as url:
        done = pip_download(url, "demo-ext", tmp_path / "got")
    assert done.returncode == 0, done.stderr
    with pytest.raises(Problem, match=r"has demo_ext-0\.9-\S+ with other bytes"):
        static_index.append(site, "demo_ext", [make_wheel(tmp_path, version="0.9")])


def test_files_may_lie_elsewhere(tmp_path: Path) -> None:
    site, wheel = tmp_path / "site", make_wheel(tmp_path / "files", version="1.0+cu130torch2.14")
    with serving(tmp_path / "files") as url:
        address = url.removesuffix("/simple/")
        static_index.append(site, "demo_ext", [wheel], f"{address}/")
        assert not list(site.glob("*.whl"))
        with serving(site) as index:
            done = pip_download(f"{index}cu130-torch2.14/", "demo-ext", tmp_path / "got")
    assert done.returncode == 0, done.stderr


KILLED = """
import os, sys
from pathlib import Path
from wheelyard.tools import static_index
left, replace = int(sys.argv[1]), Path.replace
def counted(*arguments):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), 9)
    return replace(*arguments)
Path.replace = counted
static_index.append(Path(sys.argv[2]), "demo_ext", [Path(name) for name in sys.argv[3:]])
"""


def test_killed_at_any_write_the_index_serves_what_it_names(tmp_path: Path) -> None:
    first, second = releases(tmp_path)
    whole, killed = tmp_path / "whole", 0
    static_index.append(whole, "demo_ext", first)
    static_index.append(whole, "demo_ext", second)
    while True:
        site = tmp_path / f"site-{killed}"
        static_index.append(site, "demo_ext", first)
        words = [sys.executable, "-c", KILLED, str(killed + 1), str(site), *map(str, second)]
        if subprocess.run(words).returncode != -9:
            break
        killed += 1
        for page in site.glob("simple/*/demo-ext/index.html"):
            named = static_index._listed(page.parent)
            assert {
                f.name for f in first if page.parts[-3] in static_index.index_of_file(f.name)
            } <= set(named)
            for name, digest in named.items():
                assert sha256((site / name).read_bytes()).hexdigest() == digest
        static_index.append(site, "demo_ext", second)
        assert tree(site) == tree(whole)
    assert killed >= 6  # two wheels, two pages, two listings


def test_two_releases_at_once_are_both_there(tmp_path: Path) -> None:
    several = [
        [make_wheel(tmp_path / v, version=f"{v}+cu130torch2.14")] for v in map(str, range(1, 9))
    ]
    words = [sys.executable, "-c", KILLED, "0", str(tmp_path / "site")]
    running = [subprocess.Popen([*words, *map(str, files)]) for files in several]
    assert [process.wait() for process in running] == [0] * len(several)
    listed = static_index._listed(tmp_path / "site/simple/cu130-torch2.14/demo-ext")
    assert set(listed) == {file.name for files in several for file in files}

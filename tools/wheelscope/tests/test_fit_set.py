"""`wheelscope fit` for several projects, on wheels with libraries that a real linker made."""

import json
import sys
import tomllib
from pathlib import Path

import pytest
import sample_wheels
from package_index import Index
from packaging.pylock import Pylock
from program import Fit, compiled, install, run
from sample_wheels import MACHINE, PYTHON

from validation import tables

PLATFORM = f"{PYTHON}-{PYTHON}-manylinux_2_17_{MACHINE}"


@pytest.fixture(scope="module")
def cuda_module(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Builds a module that needs libcudart.so.12."""
    folder = tmp_path_factory.mktemp("cuda")
    soname = "-Wl,-soname,libcudart.so.12"
    compiled(folder / "libcudart.so", "void cudaFree(void) {}", soname)
    call = "void cudaFree(void); void call(void) { cudaFree(); }"
    return sample_wheels.library(folder, call, f"-L{folder}", "-lcudart")


@pytest.fixture(autouse=True)
def stocked(index: Index, cuda_module: bytes) -> None:
    """An index with torch for CUDA 12, then 13; an extension for 12 that requires any torch; and
    its users."""

    twelve = "Requires-Dist: nvidia-cuda-runtime-cu12==12.8.90\n"
    thirteen = "Requires-Dist: nvidia-cuda-runtime==13.0.48\n"
    on_torch = "Requires-Dist: sample\nRequires-Dist: torch>=2.12\n"
    for name, metadata in {
        f"torch-2.10.0-{PLATFORM}": twelve,
        f"torch-2.11.0-{PLATFORM}": thirteen,
        f"torch-2.12.0-{PLATFORM}": thirteen,
        f"nvidia_cuda_runtime_cu12-12.8.90-{PLATFORM}": "",
        f"nvidia_cuda_runtime-13.0.48-{PLATFORM}": "",
        "user-1.0-py3-none-any": "Requires-Dist: sample\n",
        "user-2.0-py3-none-any": on_torch,
        "idle-1.0-py3-none-any": "",
    }.items():
        index.offer(f"{name}.whl", {"empty.py": b""}, metadata)
    index.offer(
        f"sample-1.0-{PLATFORM}.whl", {"sample.so": cuda_module}, "Requires-Dist: torch>=2.10\n"
    )


def versions(answer: dict[str, object], key: str = "packages") -> dict[str, str]:
    packages: list[dict[str, str]] = answer[key]  # type: ignore[assignment]
    return {one["name"]: one["version"] for one in packages}


def test_bytes_decide_where_metadata_allows_more(fit: Fit) -> None:
    answer, code, _ = fit("torch", "sample")
    assert code == 0
    assert versions(answer) == {
        "torch": "2.10.0",
        "sample": "1.0",
        "nvidia-cuda-runtime-cu12": "12.8.90",
    }
    [refused] = answer["refused"]
    assert (refused["package"], refused["other"]) == ("sample", "torch")
    assert refused["other_versions"] == "2.11.0 to 2.12.0"
    assert "libcudart.so.12" in refused["text"]
    assert "pip install torch==2.10.0 sample==1.0 --index-url" in answer["command"]


def test_a_version_that_cannot_be_is_not_chosen(fit: Fit) -> None:
    answer, code, _ = fit("user", "--format", "set")
    assert code == 0
    assert versions(answer)["user"] == "1.0"
    assert "pip install user==1.0 sample==1.0 torch==2.10.0 --index-url" in answer["command"]


def test_the_smallest_reason_is_whole_and_needs_each_part(fit: Fit) -> None:
    asked = ["torch>=2.11", "user", "idle"]
    answer, code, _ = fit(*asked)
    assert code == 1
    texts = [line["text"] for line in answer["conflict"]]
    assert texts[:2] == ["you ask for torch>=2.11", "you ask for user"]
    assert texts[-1] == "user 1.0 to 2.0 requires sample"
    assert len(texts) == 4
    assert texts[2].startswith("sample 1.0 with torch 2.11.0 to 2.12.0: ")
    assert answer["nearest_asked"] == ["torch", "user", "idle"]
    assert versions(answer, "nearest")["torch"] == "2.10.0"
    for left_out in asked[:2]:
        rest = [one for one in asked if one != left_out]
        assert fit(*rest)[1] == 0


def test_a_version_that_does_not_exist_is_said_with_those_that_do(fit: Fit) -> None:
    answer, _, _ = fit("torch>=3", "idle")
    [line] = answer["conflict"]
    assert line["text"] == (
        "you ask for torch>=3, and there is no such version, only 2.10.0 to 2.12.0"
    )


def test_every_byte_that_came_is_counted(fit: Fit, index: Index) -> None:
    """Pages and rejected files count too. Files are kept for the next time, pages are not."""
    first, second = (fit("torch", "sample")[0] for _ in range(2))
    pages = {path for path, _ in index.asked if path in index.pages}
    least = sum(len(index.pages[path][1]) for path in pages)
    assert first["received"] > first["read"] + least
    assert second["read"] == first["read"]
    assert least <= second["received"] < first["read"]


def test_code_for_gpus_that_was_not_looked_at_is_said(fit: Fit) -> None:
    asked = ("torch", "idle")
    assert fit(*asked, "--gpu", "9.0")[0]["notes"] == [
        "whether there is code for the GPUs here was not looked at: --deep tells"
    ]
    assert fit(*asked, "--gpu", "9.0", "--deep")[0]["notes"] == []


def test_lock_file(index: Index, tmp_path: Path) -> None:
    words = ["--format", "pylock", "--python", sys.executable, "--index", index.simple]
    done = run("fit", *words, "sample", "idle", env={"HOME": str(tmp_path)})
    lock = Pylock.from_dict(tomllib.loads(done.stdout))
    assert [(one.name, str(one.version)) for one in lock.packages] == [
        ("sample", "1.0"),
        ("idle", "1.0"),
        ("nvidia-cuda-runtime-cu12", "12.8.90"),
        ("torch", "2.10.0"),
    ]
    assert all(one.wheels and one.wheels[0].hashes["sha256"] for one in lock.packages)
    assert "leave --json out" in run("fit", "--json", *words, "sample", code=2).stderr


def test_why(fit: Fit) -> None:
    answer, _, _ = fit("sample", "idle", "--why", "torch")
    assert answer["why"][0] == "sample 1.0: torch>=2.10"
    assert answer["why"][1] == "torch 2.12.0 is the newest version, but:"
    assert any("libcudart.so.12" in line for line in answer["why"])
    answer, _, _ = fit("sample", "--why", "idle")
    assert answer["why"] == ["idle is not in the set: nothing requires it"]


def test_keeps_what_is_installed(fit: Fit, bare: Path) -> None:
    install(bare, "torch", "2.11.0")
    words = ["torch", "idle", "--python", bare]
    assert versions(fit(*words)[0])["torch"] == "2.12.0"
    assert versions(fit(*words, "--keep")[0])["torch"] == "2.11.0"


def test_groups_of_a_pyproject(fit: Fit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyproject.toml").write_text(
        """
        [project]
        dependencies = ["idle"]
        [dependency-groups]
        gpu = ["sample", {include-group = "Base"}]
        base = ["torch<2.12"]
        loop = [{include-group = "loop"}]
        """
    )
    monkeypatch.chdir(tmp_path)
    assert fit("--group", "gpu")[0]["asked"] == ["sample", "torch<2.12"]
    answer, _, _ = fit("-r", "pyproject.toml", "--group", "base")
    assert answer["asked"] == ["idle", "torch<2.12"]
    for group, words in {"loop": "includes itself", "none": "the groups are: base, gpu"}.items():
        assert words in run("fit", "--group", group, code=3).stderr


def test_torch_for_the_cuda_and_the_driver(fit: Fit) -> None:
    options = ["torch", "idle"]
    assert versions(fit(*options, "--cuda", "12")[0])["torch"] == "2.10.0"
    assert versions(fit(*options, "--driver", "550.54")[0])["torch"] == "2.10.0"
    assert versions(fit(*options, "--driver", "580.95.05")[0])["torch"] == "2.12.0"
    answer, code, _ = fit(*options, "--cuda", "11")
    assert code == 1
    assert "--cuda asks for another" in json.dumps(answer["conflict"])


def test_a_wheel_on_the_disk_in_a_set(fit: Fit, tmp_path: Path) -> None:
    name = "sample-9.0-py3-none-any.whl"
    path = tmp_path / name
    path.write_bytes(sample_wheels.wheel(name, {}, "Requires-Dist: torch<2.11\n"))
    answer, code, _ = fit("user", path)
    assert code == 0
    assert versions(answer) == {
        "user": "1.0",
        "sample": "9.0",
        "torch": "2.10.0",
        "nvidia-cuda-runtime-cu12": "12.8.90",
    }


@pytest.mark.skipif(MACHINE != "x86_64", reason="the table is of torch's x86_64 wheels")
def test_a_symbol_that_newer_torches_lack(fit: Fit, tmp_path: Path) -> None:
    rows = tables.read_csv("torch_symbols.csv")
    symbol = next(name for name, _, last in rows if last == "2.11")
    code = f'void gone(void) __asm__("{symbol}"); void call(void) {{ gone(); }}'
    name = f"sample-9.0-{PLATFORM}.whl"
    path = tmp_path / name
    members = {"sample.so": sample_wheels.library(tmp_path, code)}
    path.write_bytes(sample_wheels.wheel(name, members, "Requires-Dist: torch\n"))
    answer, code, _ = fit("torch", path)
    assert versions(answer)["torch"] == "2.11.0"
    [refused] = answer["refused"]
    assert (refused["other"], refused["other_versions"]) == ("torch", "2.12.0")
    [sample] = [one for one in answer["packages"] if one["name"] == "sample"]
    assert sample["judged"]["verdict"] == "depends"


def test_an_old_torch_is_built_for_numpy_one(fit: Fit, index: Index) -> None:
    for release in ("torch-2.2.0", "numpy-1.26.4", "numpy-2.4.0"):
        index.offer(f"{release}-{PLATFORM}.whl", {})
    answer, code, _ = fit("torch==2.2.0", "numpy")
    assert code == 0
    assert versions(answer) == {"torch": "2.2.0", "numpy": "1.26.4"}
    [refused] = answer["refused"]
    assert refused["text"] == (
        "torch 2.2.0 with numpy 2.4.0: torch is built for NumPy 1; it will meet NumPy 2.4.0"
    )


@pytest.mark.parametrize(
    ("helper", "fits"), [("7.0", "depends"), ("8.0", "works"), ("9.0", "depends")]
)
def test_a_module_that_only_another_set_brings(
    fit: Fit, index: Index, tmp_path: Path, bare: Path, helper: str, fits: str
) -> None:
    """Its requirement brings the module, through another package, in one version but not in the
    next; in the version before, the module lacks a name."""
    members = {
        "sample/__init__.py": b"from clack_of_tests import echo\n",
        "sample/_core.abi3.so": sample_wheels.library(tmp_path, "void nothing(void) {}"),
    }
    wheels = {
        f"sample-9.0-{PLATFORM}.whl": (members, "Requires-Dist: helper\n"),
        "helper-7.0-py3-none-any.whl": ({"helper.py": b""}, "Requires-Dist: clacker<1\n"),
        "helper-8.0-py3-none-any.whl": ({"helper.py": b""}, "Requires-Dist: clacker\n"),
        "helper-9.0-py3-none-any.whl": ({"helper.py": b""}, ""),
        "clacker-0.9-py3-none-any.whl": ({"clack_of_tests/__init__.py": b""}, ""),
        "clacker-1.0-py3-none-any.whl": ({"clack_of_tests/__init__.py": b"echo = 1"}, ""),
    }
    for name, (files, needs) in wheels.items():
        index.offer(name, files, needs)
    answer, _, complaint = fit("sample", f"helper=={helper}", "--python", bare)
    (sample,) = (one for one in answer["packages"] if one["name"] == "sample")
    assert sample["judged"]["verdict"] == fits, complaint
    assert ("clack_of_tests" in json.dumps(sample)) == (fits == "depends")


def test_a_module_that_is_opened_as_a_library(fit: Fit, cuda_module: bytes, tmp_path: Path) -> None:
    name = f"sample-9.0-{PLATFORM}.whl"
    opening = b'import torch\nfrom . import find\ntorch.ops.load_library(\n    find("_core")\n)\n'
    members = {
        "sample/__init__.py": opening,
        "sample/find.py": b"",
        "sample/_core.abi3.so": cuda_module,
    }
    path = tmp_path / name
    path.write_bytes(sample_wheels.wheel(name, members, "Requires-Dist: torch\n"))
    answer, _, _ = fit("torch", path)
    assert versions(answer)["torch"] == "2.10.0"

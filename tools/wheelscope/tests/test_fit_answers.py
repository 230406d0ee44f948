"""What `wheelscope fit` prints for people, and what it says about the torch and the Python that a
wheel will meet."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sample_wheels
from package_index import Index
from program import Fit, compiled, run, save_machine, virtual_environment
from sample_wheels import MACHINE, NAME, PYTHON

pytestmark = pytest.mark.usefixtures("scope")  # skips where the program is not built

Printed = Callable[..., str]


@pytest.fixture
def printed(index: Index, tmp_path: Path) -> Printed:
    """Returns a function that returns what fit prints about a project; fit must end with `code`."""

    def of(*arguments: str, code: int = 0) -> str:
        where = ("--index", index.simple, "--python", sys.executable)
        home = {**os.environ, "HOME": str(tmp_path)}
        done = run("fit", *arguments, *where, code=code, env=home)
        return done.stdout + done.stderr

    return of


def test_the_file_to_take(printed: Printed, index: Index, module: bytes) -> None:
    elsewhere = f"sample-1.0-cp38-cp38-manylinux_2_17_{MACHINE}.whl"
    old = NAME.replace("-1.0-", "-0.9-")
    entries = [index.offer(name, {"sample.so": module}) for name in (NAME, elsewhere, old)]
    lines = printed("sample").splitlines()
    assert lines[0] == "sample"
    assert lines[1].startswith(f"  {NAME}  works   ")
    assert lines[1].endswith("MB read")
    assert lines[2] == "  and 1 file of the same versions, for other systems or Pythons"
    labels = ["not judged", f"take        {NAME}", f"type        {sys.executable}"]
    assert all(
        line.strip().startswith(label) for line, label in zip(lines[3:], labels, strict=True)
    )
    assert f"all {entries[0]['size'] / 1e6:.1f} MB read" in printed("sample", "--deep")


def test_nothing_to_take(printed: Printed, index: Index) -> None:
    for minor in range(6, 20):
        index.offer(f"sample-1.0-cp3{minor}-cp3{minor}-win32.whl", {"sample.py": b""})
    text = printed("sample", code=1)
    assert text.count("fails") == 12  # the others are counted
    assert "and 2 files of the same versions" in text
    index.page("sample", [])
    index.add("sample-1.0.tar.gz", b"sources")
    assert "no wheel: only sample-1.0.tar.gz is left" in printed("sample", code=1)


def test_what_would_have_to_change(printed: Printed, index: Index, module: bytes) -> None:
    index.offer(NAME, {"sample.so": module}, "Requires-Python: >=3.99\n")
    text = printed("sample", code=1)
    assert "it requires Python >=3.99" in text
    assert f"nearest     {NAME}" in text


def test_a_torch_that_is_installed_first(
    fit: Fit, printed: Printed, index: Index, module: bytes
) -> None:
    torch = f"torch-2.99.0-{PYTHON}-{PYTHON}-manylinux_2_17_{MACHINE}.whl"
    needs = "Requires-Dist: nvidia-cuda-runtime-cu12==12.8.90\n"
    index.offer(torch, {"torch/__init__.py": b""}, needs)
    index.offer(NAME, {"sample.so": module}, "Requires-Dist: torch==2.99.0\n")
    [answer], code, _ = fit("sample", "--with", "torch==2.99.0", "--index", index.simple)
    assert (code, answer["take"]) == (0, NAME)
    index.page("torch", [])
    assert "2.98.0" in printed("sample", "--with", "torch==2.98.0", code=3)


def test_symbols_of_this_torch(fit: Fit, index: Index, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    folder = Path(torch.__file__).parent / "lib"
    for symbol, outcome in {"aoti_torch_abi_version": 0, "aoti_torch_of_another_year": 1}.items():
        source = f"void {symbol}(void); void call(void) {{ {symbol}(); }}"
        needy = sample_wheels.library(
            tmp_path, source, f"-L{folder}", "-Wl,--no-as-needed", "-ltorch", "-ltorch_cpu",
            "-Wl,--unresolved-symbols=ignore-all",
        )  # fmt: skip
        index.offer(NAME, {"sample.so": needy}, "Requires-Dist: torch\n")
        home = tmp_path / symbol  # of its own: the cache knows the file by its address
        home.mkdir()
        [answer], code, _ = fit("sample", "--index", index.simple, HOME=str(home))
        assert code == outcome, answer["files"]
        if outcome:
            assert symbol in answer["files"][0]["reason"]


def test_a_package_may_import_the_module_of_its_name(
    fit: Fit, index: Index, tmp_path: Path
) -> None:
    """For instance cv2: its native module is imported by name, in a function."""
    compiled(tmp_path / "libabsent.so", "void absent(void) {}")
    call = "void absent(void); void call(void) { absent(); }"
    native = sample_wheels.library(tmp_path, call, f"-L{tmp_path}", "-l:libabsent.so")
    package = b'import importlib\ndef load(name): importlib.import_module(name)\nload("sample")\n'
    members = {"sample/__init__.py": package, "sample/sample.so": native}
    index.offer(NAME, members)
    [answer], code, _ = fit("sample", "--index", index.simple)
    assert (answer["files"][0]["verdict"], code) == ("depends", 1)


@pytest.mark.parametrize(
    ("requires", "verdict"), [("", "fails"), ("Requires-Dist: helper\n", "works")]
)
def test_a_module_that_nothing_brings(
    fit: Fit, index: Index, module: bytes, tmp_path: Path, requires: str, verdict: str
) -> None:
    """Unless a requirement brings it, whatever its distribution is called."""
    helper = "helper-1.0-py3-none-any.whl"
    files = {"sample/__init__.py": b"import brought_by_helper", "sample/_C.so": module}
    index.offer(NAME, files, requires)
    index.offer(helper, {"brought_by_helper.py": b""})
    bare = virtual_environment(tmp_path / "bare")
    [answer], _, _ = fit("sample", "--index", index.simple, "--python", bare / "bin/python")
    [found] = answer["files"]
    assert found["verdict"] == verdict, found
    if verdict == "fails":
        assert "brought_by_helper, which is not here" in found["reason"]


@pytest.mark.parametrize(
    ("files", "verdict"),
    [
        ({"sample/__init__.py": b"from sample.absent.part import x"}, "fails"),
        ({"sample/__init__.py": b"from .absent import x"}, "fails"),
        ({"sample/__init__.py": b"", "beside/__init__.py": b"import sample.absent"}, "works"),
        ({"first/__init__.py": b"", "second/__init__.py": b"import first.absent"}, "depends"),
    ],
)
def test_a_module_that_its_package_lacks(
    fit: Fit, index: Index, module: bytes, tmp_path: Path, files: dict[str, bytes], verdict: str
) -> None:
    """pyodps 0.13 has examples that import tests, which are not in the wheel."""
    index.offer(NAME, {**files, "first/_C.so": module})
    bare = virtual_environment(tmp_path / "bare")
    [answer], _, _ = fit("sample", "--index", index.simple, "--python", bare / "bin/python")
    assert answer["files"][0]["verdict"] == verdict, answer


@pytest.mark.parametrize(("source", "verdict"), [({}, "fails"), ({"sample/_C.py": b""}, "works")])
def test_a_source_beside_a_module_of_another_python(
    fit: Fit, index: Index, module: bytes, source: dict[str, bytes], verdict: str
) -> None:
    """Python skips the module and takes the source: zeroconf 0.94 for 3.11 has modules of 3.9."""
    files = {"sample/__init__.py": b"from . import _C", **source}
    other = f"sample/_C.cpython-38-{MACHINE}-linux-gnu.so"
    index.offer(NAME, {**files, other: module})
    [answer], _, _ = fit("sample", "--index", index.simple)
    assert answer["files"][0]["verdict"] == verdict, answer


# A module that uses the API of NumPy 2.0.
NUMPY_TWO = """
    void PyCapsule_GetPointer(void);
    void (*get)(void) = PyCapsule_GetPointer;
    const char *texts[] = {"numpy._core._multiarray_umath", "numpy.core._multiarray_umath", "_ARRAY_API",
        "module was compiled against NumPy C-API version 0x%x (NumPy 2.0) but the running NumPy"};
"""
PACKED = 'const char *packed = "LZSS string data decompression failed";'
OWN = {"sample/__init__.py": b""}
SHARED = {"shared/sample/__init__.py": b"from . import code"}


@pytest.mark.parametrize(
    ("own", "source", "helper", "verdict", "reason"),
    [
        (OWN, "", {"1.0": {}}, "works", None),
        (OWN, "", {"0.9": {}}, "fails", "it requires helper>=1, which the index does not have"),
        (OWN, "", {"1.0": {"helper.so": NUMPY_TWO}}, "depends", "helper.so needs NumPy 2.0"),
        ({"sample.so": b""}, NUMPY_TWO, {"1.0": {}}, "fails", "sample.so needs NumPy 2.0"),
        (
            {"sample.so": b""},
            'const char *import = "helper.part";',
            {"1.0": {"helper/part.py": "from sample import name"}},
            "depends",
            "helper/part.py imports name from sample, which imports that file",
        ),
        (
            {"sample.so": b""},
            'const char *texts[] = {"first", "helper.part", "sample & helper version mismatch"};',
            {"1.0": {}},
            "depends",
            "sample.so refuses some versions of helper",
        ),
        (
            {**SHARED, "shared/sample/code.so": b""},
            'const char *import = "shared.other";',
            {"1.0": {"shared/helper.py": ""}},
            "depends",
            "code.so names shared.other, which is not here",
        ),
        (
            {**SHARED, "shared/sample/code.so": b""},
            'const char *imports = "shared.helpershared.sample.code";',
            {"1.0": {"shared/helper.py": ""}},
            "works",
            None,
        ),
        (
            {**SHARED, "shared/sample/code.so": b""},
            PACKED,
            {"1.0": {"shared/helper.py": ""}},
            "depends",
            "code.so hides which modules it imports",
        ),
    ],
)
def test_what_is_required_counts(
    fit: Fit,
    index: Index,
    tmp_path: Path,
    own: dict[str, bytes],
    source: str,
    helper: dict[str, dict[str, str]],
    verdict: str,
    reason: str | None,
) -> None:
    """With NumPy 1.26 installed, the wheels that a package requires are examined too."""
    native = sample_wheels.library(tmp_path, source)
    members = {
        name: body or (native if name.endswith(".so") else b"") for name, body in own.items()
    }
    index.offer(NAME, members, "Requires-Dist: helper>=1\n")
    for version, texts in helper.items():
        body = {
            path: sample_wheels.library(tmp_path, text) if path.endswith(".so") else text.encode()
            for path, text in texts.items()
        }
        name = NAME.replace("sample-1.0", f"helper-{version}")
        index.offer(name, {"helper/__init__.py": b"", **body})
    bare = virtual_environment(tmp_path / "bare")
    [site] = bare.glob("lib/python*/site-packages")
    (site / "numpy-1.26.4.dist-info").mkdir()
    (site / "numpy-1.26.4.dist-info/METADATA").write_text("Name: numpy\nVersion: 1.26.4\n")
    [answer], _, _ = fit("sample", "--index", index.simple, "--python", bare / "bin/python")
    [found] = answer["files"]
    assert found["verdict"] == verdict, found
    assert reason is None or reason in found["reason"]


def test_versions_that_do_not_go_together(fit: Fit, index: Index, tmp_path: Path) -> None:
    """An installer goes back to older versions, which were not examined."""
    requires = {"sample-1.0": "helper other", "helper-2.0": "", "other-1.0": "helper<2"}
    for file, names in requires.items():
        lines = "".join(f"Requires-Dist: {one}\n" for one in names.split())
        index.offer(NAME.replace("sample-1.0", file), {f"{file[:6]}.py": b""}, lines)
    bare = virtual_environment(tmp_path / "bare")
    [answer], _, _ = fit("sample", "--index", index.simple, "--python", bare / "bin/python")
    [found] = answer["files"]
    assert found["verdict"] == "depends", found
    assert "other 1.0 requires helper<2, and 2.0 would come" in found["reason"]


# --- What lies behind the bytes that are read without --deep ---------------------------------------
GPU_NOTE = "whether it has code for the GPUs here was not looked at: --deep tells"

# The functions of the C library that a CUDA runtime needs, and a module that contains one.
RUNTIME = """
    extern void dlvsym(), mkfifo(), nftw(), pthread_rwlockattr_setpshared(), shmget();
    void (*needs[])() = {dlvsym, mkfifo, nftw, pthread_rwlockattr_setpshared, shmget};
"""


def with_gpu(folder: Path, driver: str) -> Path:
    gpus = [{"name": "NVIDIA H200", "capability": "9.0"}]
    return save_machine(folder / f"{driver}.json", driver=driver, gpus=gpus)


def test_a_runtime_inside_may_need_a_newer_driver(fit: Fit, index: Index, tmp_path: Path) -> None:
    module = sample_wheels.library(tmp_path, RUNTIME, "-Wl,--no-as-needed", "-ldl", "-lpthread")
    index.offer(NAME, {"sample.so": module})

    def ask(driver: str) -> tuple[Any, int]:
        there = with_gpu(tmp_path, driver)
        [answer], code, _ = fit("sample", "--index", index.simple, "--machine", there)
        return answer["files"][0], code

    file, code = ask("535.54.03")
    assert (file["verdict"], file["obstacle"], code) == ("depends", "driver", 1)
    assert "not known without --deep; 535.54.03 is here" in file["reason"]
    assert file["read"] < file["size"] / 4
    file, code = ask("595.45.04")
    assert (file["verdict"], file["notes"], code) == ("works", [GPU_NOTE], 0)


def test_loose_device_code_is_mentioned(fit: Fit, index: Index, tmp_path: Path) -> None:
    there = with_gpu(tmp_path, "595.45.04")
    name = "loose-1.0-py3-none-any.whl"
    for members, notes in (({}, []), ({"kernels/add.cubin": b"\x7fELF" * 200}, [GPU_NOTE])):
        index.offer(name, members)
        [answer], _, _ = fit("loose", "--index", index.simple, "--machine", there)
        assert answer["files"][0]["notes"] == notes

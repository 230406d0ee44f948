"""What `wheelscope fit` prints for people, and what it says about the torch, the Python and the
packages that a wheel will meet."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sample_wheels
from package_index import Index
from program import Fit, compiled, install, run, save_machine, site_of
from sample_wheels import MACHINE, NAME, PYTHON

Printed = Callable[..., str]


@pytest.fixture
def printed(index: Index, settings: dict[str, str]) -> Printed:
    """Returns a function that returns what fit prints about a project; fit must end with `code`."""

    def of(*arguments: str, code: int = 0) -> str:
        where = ("--index", index.simple, "--python", sys.executable)
        done = run("fit", *arguments, *where, code=code, env=settings)
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
    [answer], code, _ = fit("sample", "--with", "torch==2.99.0")
    assert (code, answer["take"]) == (0, NAME)
    index.page("torch", [])
    assert "2.98.0" in printed("sample", "--with", "torch==2.98.0", code=3)


@pytest.mark.parametrize("symbol", ["aoti_torch_abi_version", "aoti_torch_of_another_year"])
def test_symbols_of_this_torch(fit: Fit, index: Index, tmp_path: Path, symbol: str) -> None:
    torch = pytest.importorskip("torch")
    source = f"void {symbol}(void); void call(void) {{ {symbol}(); }}"
    flags = ("-Wl,--no-as-needed", "-ltorch", "-ltorch_cpu", "-Wl,--unresolved-symbols=ignore-all")
    folder = Path(torch.__file__).parent / "lib"
    needy = sample_wheels.library(tmp_path, source, f"-L{folder}", *flags)
    index.offer(NAME, {"sample.so": needy}, "Requires-Dist: torch\n")
    [answer], code, _ = fit("sample")
    assert code == symbol.endswith("year"), answer["files"]
    assert code == 0 or symbol in answer["files"][0]["reason"]


# A module that uses the API of NumPy 2.0.
NUMPY_TWO = """
    void PyCapsule_GetPointer(void);
    void (*get)(void) = PyCapsule_GetPointer;
    const char *texts[] = {"numpy._core._multiarray_umath", "numpy.core._multiarray_umath", "_ARRAY_API",
        "module was compiled against NumPy C-API version 0x%x (NumPy 2.0) but the running NumPy"};
"""
# A module that Cython compiled, which uses the types of NumPy 1 and none of its functions.
NUMPY_TYPES = """
    void PyObject_GetAttrString(void);
    void (*get)(void) = PyObject_GetAttrString;
    const char *texts[] = {"dtype", "numpy.core.multiarray failed to import",
        "%s.%s size changed, may indicate binary incompatibility. Expected %zd from C header, got %zd"};
"""
USES_TORCH = "void aoti_torch_abi_version(void); void a(void) { aoti_torch_abi_version(); }"
IMPORTS_BY_NAME = 'import importlib\ndef f(name): importlib.import_module(name)\nf("sample")\n'
OTHER_PYTHON = f"sample/_C.cpython-38-{MACHINE}-linux-gnu.so"
MISMATCH = 'const char *texts[] = {"first", "helper.part", "sample & helper version mismatch"};'
PACKED = 'const char *packed = "LZSS string data decompression failed";'

# Files of the sample, or of another release, with their texts, which are C for a library; and what
# fit says of the sample beside NumPy 1.26: the verdict, and a part of the reason.
Texts = dict[str, str]
REQUIRES, INIT, HELPER = "requires", "sample/__init__.py", "helper-1.0:helper/__init__.py"
NEEDS: Texts = {INIT: "", REQUIRES: "helper>=1"}
NUMPY_COMES: Texts = {"numpy-2.1:numpy/__init__.py": ""}
HELPER_WANTS_NUMPY: Texts = {HELPER: "", f"helper-1.0:{REQUIRES}": "numpy>=2"}
IMPORTS_PART: Texts = {INIT: "import helper.part", "a.so": "", REQUIRES: "helper"}
IMPORTS_NAME: Texts = IMPORTS_PART | {INIT: "from helper import name"}
MAKES_PART: Texts = {"helper-1.0:helper/a.py": "import sys\nsys.modules['helper.part'] = sys"}
BRINGS_PART: Texts = {"other-1.0:helper/part.py": ""}
HELPER_CLASH: Texts = {
    REQUIRES: "helper other",
    "helper-2.0:helper/__init__.py": "",
    "other-1.0:other.py": "",
    f"other-1.0:{REQUIRES}": "helper<2",
}
SHARED: Texts = {
    "shared/sample/__init__.py": "from . import code",
    REQUIRES: "helper",
    HELPER: "",
    "helper-1.0:shared/helper.py": "",
}
CODE = "shared/sample/code.so"
CASES: list[tuple[Texts, str, str]] = [
    # For instance cv2: its native module is imported by name, in a function.
    ({INIT: IMPORTS_BY_NAME, "sample/sample.so": "void *no = absent;"}, "depends", ""),
    ({INIT: "import brought", "a.so": ""}, "fails", "brought, which is not here"),
    ({INIT: "import brought", REQUIRES: "helper", "helper-1.0:brought.py": ""}, "works", ""),
    # pyodps 0.13 has examples that import tests, which are not in the wheel.
    ({INIT: "from sample.absent.part import x", "a.so": ""}, "fails", ""),
    ({INIT: "from .absent import x", "a.so": ""}, "fails", ""),
    ({INIT: "", "beside/__init__.py": "import sample.absent", "a.so": ""}, "works", ""),
    ({"a/__init__.py": "", "b/__init__.py": "import a.absent", "a/_C.so": ""}, "depends", ""),
    # Python skips the module and takes the source: zeroconf 0.94 for 3.11 has modules of 3.9.
    ({INIT: "from . import _C", OTHER_PYTHON: ""}, "fails", ""),
    ({INIT: "from . import _C", OTHER_PYTHON: "", "sample/_C.py": ""}, "works", ""),
    ({**NEEDS, HELPER: ""}, "works", ""),
    (
        {**NEEDS, "helper-0.9:helper.py": ""},
        "fails",
        "requires helper>=1, which the index does not",
    ),
    ({**NEEDS, HELPER: "", "helper-1.0:a.so": NUMPY_TWO}, "depends", "a.so needs NumPy 2.0"),
    ({"sample.so": NUMPY_TWO}, "fails", "sample.so needs NumPy 2.0"),
    (
        {"sample.so": NUMPY_TYPES, REQUIRES: "numpy>=2", **NUMPY_COMES},
        "fails",
        "sample.so is built for NumPy 1; it will meet NumPy 2.1",
    ),
    # fastparquet 2023.2 works with the NumPy here, but the newest pandas requires a newer one.
    (
        {"sample.so": NUMPY_TYPES, REQUIRES: "helper numpy", **HELPER_WANTS_NUMPY, **NUMPY_COMES},
        "depends",
        "it will meet NumPy 2.1, which helper 1.0 requires",
    ),
    (
        {"sample.so": NUMPY_TYPES, REQUIRES: "helper", **HELPER_WANTS_NUMPY, **NUMPY_COMES},
        "fails",
        "it will meet NumPy 2.1, which helper 1.0 requires",
    ),
    # cuda-core has a part for torch's tensors, which it imports when it meets one.
    ({INIT: "", "sample/_C.so": USES_TORCH}, "works", ""),
    ({INIT: "from . import _C", "sample/_C.so": USES_TORCH}, "fails", "needs torch, which is not"),
    # aiokafka 0.8 imports modules that the newest kafka-python, which it allows, no longer has.
    ({**IMPORTS_PART, HELPER: ""}, "fails", "helper.part, which the files of helper 1.0 do not"),
    ({**IMPORTS_PART, HELPER: "", "helper-1.0:helper/part/data": ""}, "works", ""),
    ({**IMPORTS_PART, HELPER: "import sys\nx = sys.modules[__name__]"}, "fails", "helper.part"),
    ({**IMPORTS_PART, HELPER: "from . import a", **MAKES_PART}, "depends", "helper.part"),
    ({**IMPORTS_PART, HELPER: "", "helper-1.0:helper/_C.so": ""}, "depends", "helper.part"),
    ({**IMPORTS_PART, "helper-1.0:helper.py": ""}, "works", ""),
    ({**IMPORTS_PART, "helper-1.0:helper/other.py": ""}, "fails", "helper.part"),
    ({**IMPORTS_PART, REQUIRES: "helper other", HELPER: "", **BRINGS_PART}, "works", ""),
    ({**IMPORTS_PART, **HELPER_CLASH}, "depends", "helper.part"),
    (
        {**NEEDS, INIT: "try:\n import helper.part\nexcept ImportError: pass", HELPER: ""},
        "works",
        "",
    ),
    ({**IMPORTS_NAME, HELPER: "old = 1"}, "fails", "imports name from helper, which the files of"),
    ({**IMPORTS_NAME, HELPER: "name = 1"}, "works", ""),
    ({**IMPORTS_NAME, HELPER: "def __getattr__(name): return 1"}, "works", ""),
    ({**IMPORTS_NAME, HELPER: "", "helper-1.0:helper/name.py": ""}, "works", ""),
    (
        {
            "sample.so": 'const char *import = "helper.part";',
            REQUIRES: "helper",
            HELPER: "",
            "helper-1.0:helper/part.py": "from sample import name",
        },
        "depends",
        "helper/part.py imports name from sample, which imports that file",
    ),
    (
        {"sample.so": MISMATCH, REQUIRES: "helper", HELPER: ""},
        "depends",
        "refuses some versions of",
    ),
    (
        {**SHARED, CODE: 'const char *a = "shared.other";'},
        "depends",
        "names shared.other, which is",
    ),
    ({**SHARED, CODE: 'const char *a = "shared.helpershared.sample.code";'}, "works", ""),
    ({**SHARED, CODE: PACKED}, "depends", "code.so hides which modules it imports"),
    # An installer goes back to older versions, which were not examined.
    (
        {
            INIT: "",
            REQUIRES: "helper other",
            "helper-2.0:helper.py": "",
            "other-1.0:other.py": "",
            f"other-1.0:{REQUIRES}": "helper<2",
        },
        "depends",
        "other 1.0 requires helper<2, and 2.0 would come",
    ),
    # pennylane-lightning 0.29 requires pennylane, whose newest version requires a newer lightning.
    (
        {INIT: "", REQUIRES: "helper", HELPER: "", f"helper-1.0:{REQUIRES}": "sample>=2"},
        "depends",
        "helper 1.0 requires sample>=2, and 1.0 would come",
    ),
]


def offer(index: Index, folder: Path, texts: Texts) -> None:
    compiled(folder / "libabsent.so", "void absent(void) {}")
    flags = ("-Wl,--as-needed", f"-L{folder}", "-l:libabsent.so")
    wheels: dict[str, Texts] = {}
    for place, text in texts.items():
        release, _, path = place.rpartition(":")
        wheels.setdefault(release or "sample-1.0", {})[path] = text
    for release, files in wheels.items():
        required = files.pop(REQUIRES, "").split()
        members = {
            path: sample_wheels.library(folder, f"void absent(void); {text}", *flags)
            if path.endswith(".so")
            else text.encode()
            for path, text in files.items()
        }
        metadata = "".join(f"Requires-Dist: {one}\n" for one in required)
        index.offer(NAME.replace("sample-1.0", release), members, metadata)


@pytest.mark.parametrize(("texts", "verdict", "reason"), CASES)
def test_what_a_wheel_meets(
    fit: Fit, index: Index, tmp_path: Path, bare: Path, texts: Texts, verdict: str, reason: str
) -> None:
    offer(index, tmp_path, texts)
    install(bare, "numpy", "1.26.4")
    [answer], code, _ = fit("sample", "--python", bare)
    [found] = answer["files"]
    assert (found["verdict"], code) == (verdict, verdict != "works"), found
    assert reason in (found["reason"] or "")


@pytest.mark.parametrize(("required", "verdict"), [("helper", "works"), ("other", "fails")])
def test_required_wheels_in_a_folder_are_read(
    bare_fit: Fit, index: Index, tmp_path: Path, bare: Path, required: str, verdict: str
) -> None:
    brought = {"helper-1.0:brought.py": "", "other-1.0:other.py": ""}
    offer(index, tmp_path, {INIT: "import brought", REQUIRES: required, "a.so": "", **brought})
    folder = tmp_path / "wheels"
    folder.mkdir()
    for path, body in index.files.items():
        (folder / Path(path).name).write_bytes(body)
    [answer], _, _ = bare_fit("sample", "--no-index", "--find-links", folder, "--python", bare)
    assert answer["files"][0]["verdict"] == verdict, answer


@pytest.mark.parametrize("way", ["pth", "PYTHONPATH"])
def test_what_is_installed_elsewhere_counts(
    fit: Fit, index: Index, module: bytes, bare: Path, tmp_path: Path, way: str
) -> None:
    index.offer(NAME, {"sample.so": module}, "Requires-Dist: helper>=1\n")
    index.page("helper", [])
    elsewhere = install(bare, "helper").rename(tmp_path / "helper-1.0.dist-info").parent
    if way == "pth":
        (site_of(bare) / "elsewhere.pth").write_text(f"{elsewhere}\n")
    settings = {"PYTHONPATH": str(elsewhere)} if way == "PYTHONPATH" else {}
    [answer], _, _ = fit("sample", "--python", bare, **settings)
    assert answer["take"] == NAME


def test_an_installed_version_is_replaced(
    fit: Fit, index: Index, bare: Path, tmp_path: Path
) -> None:
    texts = {INIT: "", REQUIRES: "helper other", "helper-2.0:helper.py": ""}
    offer(index, tmp_path, texts | {"other-1.0:other.py": "", f"other-1.0:{REQUIRES}": "helper>1"})
    install(bare, "helper")
    [answer], _, _ = fit("sample", "--python", bare)
    assert answer["take"] == NAME


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
        [answer], code, _ = fit("sample", "--machine", with_gpu(tmp_path, driver))
        return answer["files"][0], code

    file, code = ask("535.54.03")
    assert (file["verdict"], file["obstacle"], code) == ("depends", "driver", 1)
    assert "not known without --deep; 535.54.03 is here" in file["reason"]
    assert file["read"] < file["size"] / 4
    file, code = ask("595.45.04")
    assert (file["verdict"], file["notes"], code) == ("works", [GPU_NOTE], 0)


def test_loose_device_code_is_mentioned(fit: Fit, index: Index, tmp_path: Path) -> None:
    there = with_gpu(tmp_path, "595.45.04")
    for members, notes in (({}, []), ({"kernels/add.cubin": b"\x7fELF" * 200}, [GPU_NOTE])):
        index.offer("loose-1.0-py3-none-any.whl", members)
        [answer], _, _ = fit("loose", "--machine", there)
        assert answer["files"][0]["notes"] == notes

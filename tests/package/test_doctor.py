"""The doctor: right on a healthy machine, of use on a broken one, open about what it cannot see."""

import itertools
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import cuda_ext_example
from cuda_ext_example import _ops
from cuda_ext_example._opwright import doctor as _doctor
from cuda_ext_example._opwright import first_call as _first_call
from cuda_ext_example._opwright import gpu as _gpu
from cuda_ext_example._opwright import ops as _op_list
from cuda_ext_example._opwright import self_test as _self_test

PACKAGE = Path(cuda_ext_example.__file__).parent


@pytest.fixture(scope="module")
def found():
    return _doctor.diagnose()


def run_doctor(*arguments, path=PACKAGE.parent, **environment):
    command = [sys.executable, "-m", "cuda_ext_example", *arguments]
    env = os.environ | {"PYTHONPATH": str(path)} | environment
    return subprocess.run(command, env=env, cwd=path, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("capability", "sass", "ptx", "expected"),
    [
        ("9.0", ["8.0", "9.0"], ["9.0"], ("native", "9.0")),
        ("8.9", ["7.5", "8.0", "8.6", "9.0"], [], ("native", "8.6")),
        ("8.0", ["8.6"], [], ("none", None)),
        ("9.0", ["8.0"], [], ("none", None)),
        ("9.0", ["8.0"], ["8.0"], ("ptx", "8.0")),
        ("12.1", ["10.0"], ["8.0", "10.0"], ("ptx", "10.0")),
        ("8.0", [], ["9.0"], ("none", None)),
        ("9.0", [], ["9.0"], ("ptx", "9.0")),
        ("9.0", ["9.0a"], [], ("native", "9.0a")),
        ("10.3", ["10.0a"], ["10.0a"], ("none", None)),
        ("10.3", ["10.0f"], [], ("native", "10.0f")),
        ("12.0", ["10.0f"], ["10.0f"], ("none", None)),
        ("10.3", [], ["10.0f"], ("ptx", "10.0f")),
        ("8.7", ["8.0", "8.6"], ["8.0"], ("ptx", "8.0")),
        ("8.7", ["8.6", "8.7"], ["8.0"], ("native", "8.7")),
    ],
)
def test_which_code_a_gpu_runs(capability, sass, ptx, expected):
    assert _gpu.code_for(capability, sass, ptx) == expected


def test_says_where_things_are_and_what_they_are(found):
    assert found.is_well()
    text = _doctor.text(found)
    for fact in (str(PACKAGE), str(cuda_ext_example.library_path()), torch.__version__):
        assert fact in text
    assert f"cuda_ext_example {cuda_ext_example.__version__}" in text


def test_tests_every_op_and_dtype_on_every_device(found):
    devices = ["cpu", *(f"cuda:{i}" for i in range(torch.cuda.device_count()))]
    assert [test.device for test in found.self_tests] == devices
    cells = 2 * sum(len(op.dtypes) for op in _ops.OPS)  # dense and strided
    assert all(test.checks == cells and not test.failures for test in found.self_tests)
    assert f"{len(_ops.OPS)} ops" in _doctor.text(found)


def test_tells_the_story_of_the_first_call(found):
    steps = {step["step"]: step for step in found.first_call["steps"]}
    assert list(steps) == [
        *("import torch", "load the library", "create the context"),
        *("first allocation", "first launch", "steady launch"),
    ]
    has_gpu = torch.cuda.is_available()
    assert (steps["create the context"]["ms"] is not None) == has_gpu
    assert ("torch sees no GPU" in steps["create the context"]["meaning"]) != has_gpu
    assert steps["import torch"]["ms"] > steps["steady launch"]["ms"] > 0
    assert all(step["meaning"] in _doctor.text(found) for step in steps.values())


def off_by_one(a, b):
    out = cuda_ext_example.my_add(a, b)
    out[-1] += 1
    return out


def test_a_wrong_result_is_shown_and_fails(found):
    sums = [op for op in _ops.OPS if op.reference == "torch.add"]
    ops = (*sums, _op_list.Op(off_by_one, "x, y", "torch.add"))
    broken = _doctor.Diagnosis(build=found.build, first_call=found.first_call)
    with pytest.MonkeyPatch.context() as patch:
        dtypes = {op.name: ("float16", "int8", "complex64") for op in ops}
        patch.setattr(_op_list, "library_ops", lambda: dtypes)
        broken.self_tests = [_self_test.self_test("cpu", ops)]
    assert not broken.is_well()
    text = _doctor.text(broken)
    cells = 6 * len(ops)
    assert f"{cells - 6} of {cells} right" in text
    assert "WRONG off_by_one, float16, dense: element 1020 is 26.0, not 25.0" in text
    assert "and 1 more" in text


def test_an_op_that_raises_is_shown(monkeypatch):
    def refuse(*_):
        raise RuntimeError("no code for this GPU")

    monkeypatch.setattr(_op_list, "library_ops", lambda: {"refuse": ("float16",)})
    ops = (_op_list.Op(refuse, "x, y", "torch.add"),)
    assert _self_test.self_test("cpu", ops).failures[0] == (
        "refuse, float16, dense: no code for this GPU"
    )


def test_the_smoke_spec_is_right_about_every_op():
    """Its expressions are what a smoke test evaluates: they run, and agree."""
    spec = json.loads(run_doctor("--smoke-spec").stdout)
    assert [check["name"] for check in spec["checks"]] == [op.name for op in _ops.OPS]
    assert spec["timing"]["name"] in {op.name for op in _ops.OPS}
    for check in spec["checks"]:
        for dtype, shape in itertools.product(check["dtypes"], check["shapes"]):
            count = torch.Size(shape).numel()
            x = (torch.arange(count) % 50).view(shape).to(getattr(torch, dtype))
            n = 0.5 if x.is_floating_point() or x.is_complex() else 3
            names = {"torch": torch, "x": x, "y": x.flip(0), "n": n}
            torch.testing.assert_close(eval(check["call"], names), eval(check["reference"], names))


def test_a_first_call_that_crashes_is_shown(found, monkeypatch, tmp_path):
    crash = tmp_path / "crash.py"
    crash.write_text(
        "import os, sys; print('out of luck', file=sys.stderr, flush=True); os.abort()"
    )
    monkeypatch.setattr(_first_call, "__file__", str(crash))
    broken = _doctor.Diagnosis(build=found.build, first_call=_first_call.measure_in_fresh_process())
    assert not broken.is_well()
    assert "First call: FAILED, the process ended with status -6: out of luck" in _doctor.text(
        broken
    )


def test_a_driver_too_old_and_a_gpu_without_code():
    build = cuda_ext_example.build_info() | {"cuda": "13.0"}
    gpu = _gpu.Gpu(0, "GeForce GTX 970", "5.2", "none", None)
    old = _doctor.Diagnosis(build=build, gpus=[gpu], driver=_gpu.Driver("12.4", "550.54.14"))
    old.first_call = {"problem": "not run"}
    text = _doctor.text(old)
    assert "550.54.14, supports CUDA 12.4; which is TOO OLD for this library's CUDA 13.0" in text
    assert "compute capability 5.2: NO CODE for it here; build from source with TORCH_CUDA" in text


# A driver with one GPU of capability 9.0, for machines without one.
DRIVER = """
int cuDriverGetVersion(int* version) { return *version = 13010, 0; }
int cuInit(unsigned flags) { return STATUS; }
int cuGetErrorName(int error, const char** name) { return *name = "CUDA_ERROR_UNKNOWN", 0; }
int cuDeviceGetCount(int* count) { return *count = 1, 0; }
int cuDeviceGet(int* device, int index) { return *device = index, 0; }
int cuDeviceGetName(char* name, int size, int device) { return name[0] = 'T', name[1] = 0, 0; }
int cuDeviceGetAttribute(int* n, int which, int device) { return *n = which == 75 ? 9 : 0, 0; }
"""


@pytest.fixture
def make_driver(tmp_path):
    if torch.version.cuda is not None:
        pytest.skip("this torch would use the stand-in driver")
    if not shutil.which("cc"):
        pytest.skip("needs a C compiler")

    def make(status):
        library = str(tmp_path / "libcuda.so.1")
        command = ["cc", "-shared", "-fPIC", f"-DSTATUS={status}", "-xc", "-", "-o", library]
        subprocess.run(command, input=DRIVER, text=True, check=True)
        return str(tmp_path)

    return make


def test_a_gpu_that_torch_cannot_use(make_driver):
    result = run_doctor("--json", LD_LIBRARY_PATH=make_driver(status=0))
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["schema_version"] == 1
    assert found["driver"] == {"cuda": "13.1", "release": None, "problem": None}
    assert found["torch_problem"] == "this torch was built without CUDA"
    assert [test["device"] for test in found["self_tests"]] == ["cpu"]
    build = cuda_ext_example.build_info()
    code, target = _gpu.code_for("9.0", build["sass"], build["ptx"])
    gpu = {"index": 0, "name": "T", "capability": "9.0", "code": code, "target": target}
    assert found["gpus"] == [gpu]


def test_a_driver_that_does_not_start(make_driver):
    env = os.environ | {
        "PYTHONPATH": str(PACKAGE / "_opwright"),
        "LD_LIBRARY_PATH": make_driver(status=999),
    }
    command = [sys.executable, "-c", "import gpu; print(gpu.find_gpus([], []))"]
    seen = subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout
    assert "cuda='13.1'" in seen
    assert "problem='cuInit: CUDA_ERROR_UNKNOWN'" in seen
    assert seen.endswith(", [])\n")


@pytest.fixture
def without_library(tmp_path):
    """A copy of the package whose library is missing."""
    ignore = shutil.ignore_patterns("*.so", "__pycache__")
    shutil.copytree(PACKAGE, tmp_path / PACKAGE.name, ignore=ignore)
    return tmp_path


@pytest.fixture
def without_torch(without_library):
    (without_library / "torch.py").write_text("raise ImportError('libtorch.so: no such file')")
    return without_library


def test_a_library_that_is_missing(without_library):
    result = run_doctor(path=without_library)
    assert result.returncode == 1
    assert "library     missing" in result.stdout
    assert f"torch       {torch.__version__.split('+')[0]}" in result.stdout
    assert "The package cannot be imported:" in result.stdout
    assert "libcuda_ext_example.so is missing from" in result.stdout
    assert "Traceback" not in result.stderr  # torch itself warns there where NumPy is missing


def test_a_torch_that_cannot_be_imported(without_torch):
    result = run_doctor("--json", path=without_torch)
    assert result.returncode == 1
    problem = json.loads(result.stdout)["problem"]
    assert "torch cannot be imported (libtorch.so: no such file)" in problem


def test_wrong_usage(without_torch):
    result = run_doctor("--jsom", path=without_torch)
    assert result.returncode == 2
    assert "unrecognized arguments: --jsom" in result.stderr


def test_other_programs_get_the_import_error_itself(without_torch):
    (without_torch / "program").mkdir()
    (without_torch / "program/__init__.py").write_text("import cuda_ext_example")
    command = [sys.executable, "-m", "program"]
    result = subprocess.run(command, cwd=without_torch, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert result.stdout == ""
    assert "ImportError: cuda_ext_example needs torch >= 2.10" in result.stderr

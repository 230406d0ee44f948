"""`opwright inside`: PTX of a source, PTX and SASS of a library, its symbols."""

import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest
from clone import make_clone, python

CUOBJDUMP = Path(sysconfig.get_path("purelib"), "nvidia/cu13/bin/cuobjdump")
needs_nvcc = pytest.mark.skipif(not shutil.which("nvcc"), reason="needs nvcc")


def inside(clone: Path, *arguments: str) -> str:
    done = python(clone, "-m", "opwright", "inside", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    return make_clone(tmp_path / "my clone")


@needs_nvcc
def test_ptx_of_a_header_and_of_a_kernel(clone: Path):
    assert "build/inside/scale_add.ptx: " in inside(clone, "csrc/scale_add.h", "--gpu", "8.0")
    ptx = (clone / "build/inside/scale_add.ptx").read_text()
    assert ".target sm_80" in ptx
    assert "fma.rn.f32" in ptx
    assert inside(clone, "csrc/softsign.cu").endswith(" kernels\n")
    assert ".target sm_90" in (clone / "build/inside/softsign.ptx").read_text()


@needs_nvcc
@pytest.mark.skipif(not (shutil.which("cuobjdump") or CUOBJDUMP.exists()), reason="needs cuobjdump")
def test_ptx_and_sass_of_a_library(clone: Path):
    (clone / "one.cu").write_text("__global__ void one(float* x) { *x = 1; }\n")
    command = ["nvcc", "--shared", "-Xcompiler=-fPIC", "-arch=sm_80", "-o", "one.so", "one.cu"]
    subprocess.run(command, cwd=clone, check=True)
    listed = inside(clone, "one.so")
    assert ".sm_80.cubin" in listed
    assert "one(float*)" in (clone / "build/inside/one.sass").read_text()
    assert ".target sm_80" in (clone / "build/inside/one.ptx").read_text()


def test_symbols_of_the_built_library(built: Path):
    symbols = inside(built, "--symbols")
    assert "needs libtorch.so\n" in symbols
    assert " U aoti_torch_get_sizes\n" in symbols


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ([], "error: .*libdemo_ext.so does not exist; build it first: `opwright dev`"),
        (["other.so"], "error: other.so does not exist; build it first"),
        (["csrc/other.h"], "error: csrc/other.h does not exist; name a .h or .cu file of csrc/"),
        (["setup.py"], "error: .*setup.py"),
    ],
)
@needs_nvcc
def test_a_file_that_is_none(clone: Path, arguments: list[str], error: str):
    done = python(clone, "-m", "opwright", "inside", *arguments)
    assert done.returncode == 1
    assert re.search(error, done.stderr), done.stderr

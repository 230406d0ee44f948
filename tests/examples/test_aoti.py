"""Tests the AOTInductor example: a program without Python runs a model that uses the ops."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import cuda_ext_example

pytest.importorskip("setuptools", reason="Inductor needs setuptools: pip install setuptools")
EXAMPLE = Path(__file__).parents[2] / "examples/aoti"
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
TOOLS = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # where CMake and Ninja are

pytestmark = pytest.mark.skipif(
    not (shutil.which("g++") and shutil.which("cmake", path=TOOLS)),
    reason="needs g++ and CMake",
)


def run(*command, check=True):
    environment = os.environ | {"PATH": TOOLS}
    environment["PYTHONPATH"] = str(Path(cuda_ext_example.__file__).parents[1])
    done = subprocess.run(
        [str(part) for part in command], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0 or not check, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    build = tmp_path_factory.mktemp("aoti")
    run("cmake", "-S", EXAMPLE, "-B", build, f"-DTORCH={torch.__path__[0]}")
    run("cmake", "--build", build)
    return build / "run"


@pytest.mark.skipif(
    " " in torch.__file__, reason="torch links with libraries whose path has no space"
)
@pytest.mark.parametrize("device", DEVICES)
def test_a_model_runs_without_python(program, tmp_path, device):
    run(sys.executable, EXAMPLE / "export.py", tmp_path, device)
    library = cuda_ext_example.library_path()
    assert f"on {device}: [5, 64]" in run(program, library, tmp_path, device).stdout
    assert "libpython" not in run("ldd", program).stdout
    without = run(program, "libc.so.6", tmp_path, device, check=False)
    assert without.returncode != 0  # the model does need the ops' library
    assert "cuda_ext_example" in without.stderr


def test_wrong_usage(program):
    assert run(program, check=False).returncode == 2
    missing = run(program, "/no/such/library.so", "/tmp", check=False)
    assert missing.returncode == 2
    assert "/no/such/library.so" in missing.stderr

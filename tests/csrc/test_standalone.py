"""Tests the standalone program: right results on a GPU, and the reason if no GPU is usable."""

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PROGRAM = ROOT / f"build/extension-{platform.machine()}-nvcc/bin/standalone"
HAS_GPU = Path("/dev/nvidia0").exists()
# A driver that supports CUDA 11.4 and nothing newer, as on a machine that was not updated.
OLD_DRIVER = """
#include <stddef.h>
#include <string.h>

int cuInit(unsigned flags) {
  return (void)flags, 0;
}
int cuDriverGetVersion(int* version) {
  return *version = 11040, 0;
}

int cuGetProcAddress(const char* name, void** function, int version, unsigned long flags) {
  (void)version, (void)flags;
  *function = !strcmp(name, "cuInit")               ? (void*)cuInit
              : !strcmp(name, "cuDriverGetVersion") ? (void*)cuDriverGetVersion
              : !strcmp(name, "cuGetProcAddress")   ? (void*)cuGetProcAddress
                                                    : NULL;
  return *function ? 0 : 500;
}

int cuGetProcAddress_v2(const char* name, void** function, int version, unsigned long flags,
                        void* found) {
  (void)found;
  return cuGetProcAddress(name, function, version, flags);
}
"""

pytestmark = pytest.mark.skipif(
    not PROGRAM.is_file(), reason="not built here: python setup.py build_cpp"
)


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PROGRAM, *arguments], env=os.environ | environment, capture_output=True, text=True
    )


@pytest.mark.skipif(not HAS_GPU, reason="needs a GPU")
def test_every_kernel_agrees_with_the_cpu():
    done = run("--check")
    assert done.returncode == 0
    assert re.fullmatch(r"\d{3,} checks, 0 mismatches\n", done.stdout)


@pytest.mark.skipif(HAS_GPU, reason="there is a GPU")
def test_no_driver():
    done = run()
    assert done.returncode == 2
    assert "found no NVIDIA driver (libcuda.so.1); install one" in done.stderr


def test_a_driver_that_is_too_old(tmp_path: Path):
    compiler = shutil.which("cc") or shutil.which("gcc")
    assert compiler, "needs a C compiler"
    command = [compiler, "-shared", "-fPIC", "-xc", "-", "-o", tmp_path / "libcuda.so.1"]
    subprocess.run(command, input=OLD_DRIVER, text=True, check=True)
    done = run(LD_LIBRARY_PATH=str(tmp_path))
    assert done.returncode == 2
    assert re.search(
        r"the NVIDIA driver supports CUDA 11\.4 and this library was built with CUDA (1\d)\.\d+, "
        r"which needs a driver for CUDA \1\.0 or newer; update the driver",
        done.stderr,
    )


@pytest.mark.skipif(not HAS_GPU, reason="needs a GPU")
def test_no_code_for_this_gpu(tmp_path: Path):
    """It is built for 7.5 alone, without PTX: no newer GPU can run it, and the program says so."""
    import torch

    if torch.cuda.get_device_capability()[0] == 7:
        pytest.skip("this GPU runs code for 7.5")
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    engine = ROOT / "tools/opwright/opwright/cmake"
    configure = ["cmake", "-S", engine, "-B", tmp_path, "-G", "Ninja", "-DOPWRIGHT_NAME=ext"]
    configure += [f"-DOPWRIGHT_CSRC={ROOT / 'csrc'}"]
    configure += ["-DOPWRIGHT_VERSION=0", "-DOPWRIGHT_CUDA=ON", "-DOPWRIGHT_COMPILER=nvcc"]
    configure += [f"-DCMAKE_CUDA_COMPILER={nvcc}", "-DOPWRIGHT_TARGETS=7.5"]
    configure += [f"-DOPWRIGHT_CUDA_HOME={Path(nvcc).resolve().parent.parent}"]
    subprocess.run(configure, check=True, capture_output=True)
    subprocess.run(["cmake", "--build", tmp_path, "--target", "standalone"], check=True)
    done = subprocess.run([tmp_path / "bin/standalone"], capture_output=True, text=True)
    assert done.returncode == 2
    assert re.search(
        r"has no code for this GPU, whose compute capability is \d+\.\d; it holds code for 7\.5",
        done.stderr,
    )


def test_usage():
    assert run("--nonsense").returncode == 2
    assert "usage:" in run("--nonsense").stderr

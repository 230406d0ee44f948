"""Tests `wheelyard toolkit`: a CUDA toolkit from PyPI in a folder, and its wrapper between clang and CUDA 13's
fatbinary, which older and newer clangs call with different arguments."""

import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from demo_wheel import serving
from repository import wheelyard
from wheelyard.tools import suite
from wheelyard.tools.images import FOLDER

WRAPPER = FOLDER / "toolkits/fatbinary.sh"
OLD = ["--image=profile=sm_80,file=a.cubin", "--image=profile=compute_90a,file=a.ptx"]
NEW = ["--image3=kind=elf,sm=80,file=a.cubin", "--image3=kind=ptx,sm=90a,file=a.ptx"]


def test_a_version_without_a_lock_is_refused_with_those_there_are(tmp_path: Path) -> None:
    done = wheelyard(tmp_path, "toolkit", "--cuda", "1.0", str(tmp_path / "a folder"))
    assert done.returncode == 1
    assert done.stderr == "error: there is no toolkit 1.0; choose one of 12.4, 12.9, 13.0, 13.2\n"
    assert not (tmp_path / "a folder").exists()


def test_a_folder_that_is_complete_is_left_alone(tmp_path: Path) -> None:
    """Otherwise every `make` would download the toolkit again."""
    lock = FOLDER / "toolkits/13.0.lock"
    (tmp_path / ".complete").write_text(lock.read_text() + "aarch64")
    done = wheelyard(tmp_path, "toolkit", "--cuda", "13.0", "--target", "aarch64", str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    assert [file.name for file in tmp_path.iterdir()] == [".complete"]


def test_nvcc_12_is_debians_and_needs_a_mirror_of_it(tmp_path: Path) -> None:
    command = [sys.executable, FOLDER / "toolkit.py", "--cuda=12.4", tmp_path / "toolkit"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert "PyPI has no nvcc of CUDA 12.4, but Debian has" in done.stderr
    assert not (tmp_path / "toolkit").exists()


@pytest.mark.skipif(not suite.mirror_here(), reason="apt's settings name no mirror of Debian")
def test_nvcc_12_compiles_and_links(tmp_path: Path) -> None:
    """The program has a kernel, device code of two files, and the static runtime; the machine needs no GPU."""
    done = wheelyard(tmp_path, "toolkit", "--cuda", "12.4", str(tmp_path / "a toolkit"))
    assert done.returncode == 0, done.stderr
    (tmp_path / "twice.cu").write_text("__device__ int twice(int x) { return 2 * x; }\n")
    (tmp_path / "main.cu").write_text(
        """#include <cstdio>
__device__ int twice(int x);
__global__ void kernel(int* x) { *x = twice(*x); }
int main() {
  int version = 0;
  cudaRuntimeGetVersion(&version);
  kernel<<<1, 1>>>(nullptr);
  std::printf("%d %d\\n", CUDART_VERSION, version);
}
"""
    )
    nvcc = [tmp_path / "a toolkit/bin/nvcc", "-rdc=true", "-arch=sm_90", "-ccbin=/usr/bin/g++"]
    subprocess.run([*nvcc, "main.cu", "twice.cu", "-o", "main"], cwd=tmp_path, check=True)
    ran = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True)
    assert ran.stdout == "12040 12090\n", "headers of 12.4, the static runtime of 12.9"


def test_a_package_with_another_sha256_is_refused(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The mirror is a folder here, and its file under the pinned name is something else."""
    program = runpy.run_path(str(FOLDER / "toolkit.py"))
    pins = FOLDER / "toolkits/12.4.deb"
    for line in pins.read_text().splitlines():
        file = tmp_path / "simple" / line.split()[1]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("planted")
    with (
        serving(tmp_path) as mirror,
        pytest.raises(SystemExit, match="is not the file that this wheelyard pins"),
    ):
        program["debian_nvcc"](pins, mirror, tmp_path)
    assert "Hash Sum mismatch" in capfd.readouterr().err
    assert not (tmp_path / "nvcc").exists()


@pytest.fixture
def toolkit(tmp_path: Path) -> Path:
    """Makes a folder with the wrapper, and programs that print their arguments."""
    shutil.copy(WRAPPER, tmp_path / "fatbinary")
    for name in ("fatbinary-13", "ptxas"):
        (tmp_path / name).write_text(f'#!/bin/sh\nprintf "%s\\n" {name} "$@"\n')
        (tmp_path / name).chmod(0o755)
    return tmp_path


def told(toolkit: Path, *words: str) -> list[str]:
    done = subprocess.run(
        ["bash", toolkit / "fatbinary", *words], capture_output=True, text=True, check=True
    )
    return done.stdout.split()


@pytest.mark.parametrize("images", [OLD, NEW], ids=["image", "image3"])
def test_fatbinary_is_told_in_its_own_words(toolkit: Path, images: list[str]) -> None:
    words = told(toolkit, "-64", "--create", "out", *images)
    assert words == [
        "fatbinary-13",
        "--compress-all",
        "--compress-mode=size",
        "-64",
        "--create",
        "out",
        *NEW,
    ]


@pytest.mark.parametrize("images", [OLD, NEW], ids=["image", "image3"])
def test_native_code_for_newer_gpus_is_made_from_the_newest_ptx(
    toolkit: Path, images: list[str]
) -> None:
    older = "--image=profile=compute_70,file=old.ptx"
    words = told(toolkit, *images, older, "--assemble=sm_100")
    assembled = words[: words.index("fatbinary-13")]
    assert assembled[0] == "ptxas"
    assert "--gpu-name=sm_100" in assembled
    assert assembled[-1] == "a.ptx"
    assert words[-1].startswith("--image3=kind=elf,sm=100,file=")


def test_without_ptx_nothing_can_be_assembled(toolkit: Path) -> None:
    command = ["bash", toolkit / "fatbinary", NEW[0], "--assemble=sm_100"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert "--assemble needs PTX" in done.stderr

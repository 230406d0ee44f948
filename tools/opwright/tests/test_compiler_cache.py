"""The compiler cache never gives an object that this compiler, with these flags, would not have made."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from opwright.build import toolchain

HOME = toolchain.cuda_home()
NVCC = HOME / "bin/nvcc" if HOME else None
pytestmark = [
    pytest.mark.skipif(not shutil.which("ccache"), reason="needs ccache"),
    pytest.mark.skipif(NVCC is None or not NVCC.is_file(), reason="needs nvcc"),
]
KERNEL = "__global__ void f(float* x) { x[threadIdx.x] = 1 / x[threadIdx.x] + expf(x[1]); }\n"
# What changes an object, by the environment.
WAYS: dict[str, dict[str, str]] = {
    "plain": {},
    "appended": {"NVCC_APPEND_FLAGS": "-lineinfo"},
    "appended-fast": {"NVCC_APPEND_FLAGS": "--use_fast_math"},
    "prepended": {"NVCC_PREPEND_FLAGS": "-lineinfo"},
    "prepended-fast": {"NVCC_PREPEND_FLAGS": "--use_fast_math"},
}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "kernel.cu").write_text(KERNEL)
    return tmp_path / "kernel.cu"


def made(source: Path, nvcc: Path, way: str, launcher: list[str]) -> bytes:
    """The device code of an object; its host code has names that nvcc makes up in each run."""
    target, code = source.with_suffix(".o"), source.with_suffix(".code")
    settings = os.environ | {"CCACHE_DIR": str(source.parent / "cache")} | WAYS[way]
    command = [*launcher, str(nvcc), "-arch=sm_80", "-c", "-o", str(target), str(source)]
    subprocess.run(command, env=settings, check=True)
    extract = ["objcopy", "-O", "binary", "--only-section=.nv_fatbin", str(target), str(code)]
    subprocess.run(extract, check=True)
    return code.read_bytes()


def test_flags_from_the_environment_are_part_of_the_key(source: Path) -> None:
    """Each after each other one, the cache full of all of them."""
    assert NVCC
    launcher = toolchain.cache_launcher(source.parent / "elsewhere")
    without_cache = {way: made(source, NVCC, way, []) for way in WAYS}
    assert len(set(without_cache.values())) == 3  # plain, with line info, with fast math
    for way in [*WAYS, *reversed(WAYS)]:
        assert made(source, NVCC, way, launcher) == without_cache[way], way
    assert hits(source) >= len(WAYS)  # the second time each comes from the cache


@pytest.mark.skipif(
    NVCC is not None and NVCC.is_file() and NVCC.read_bytes().startswith(b"#!"),
    reason="nvcc is a script here, which calls the nvcc and ptxas of another folder",
)
@pytest.mark.parametrize("swapped_first", [True, False])
def test_a_swapped_assembler_is_another_key(source, tmp_path, monkeypatch, swapped_first) -> None:
    """Another ptxas behind the same nvcc."""
    assert HOME
    assert NVCC
    other = tmp_path / "cuda"
    other.mkdir()
    for entry in HOME.iterdir():
        if entry.name != "bin":
            (other / entry.name).symlink_to(entry.resolve())
    shutil.copytree(NVCC.resolve().parent, other / "bin")
    os.utime(other / "bin/nvcc", ns=(NVCC.stat().st_atime_ns, NVCC.stat().st_mtime_ns))
    (other / "bin/ptxas").unlink()
    (other / "bin/ptxas").write_text(f'#!/bin/sh\nexec "{HOME}/bin/ptxas" -O0 "$@"\n')
    (other / "bin/ptxas").chmod(0o755)
    homes = [other, HOME] if swapped_first else [HOME, other]
    codes = []
    for home in homes:
        monkeypatch.setenv("CUDA_HOME", str(home))
        code = made(
            source, home / "bin/nvcc", "plain", toolchain.cache_launcher(tmp_path / "elsewhere")
        )
        assert code == made(source, home / "bin/nvcc", "plain", [])
        codes.append(code)
    assert codes[0] != codes[1]


def hits(source: Path) -> int:
    counters = subprocess.check_output(
        ["ccache", "--print-stats"],
        env=os.environ | {"CCACHE_DIR": str(source.parent / "cache")}, text=True,
    )  # fmt: skip
    values = dict(line.split("\t") for line in counters.splitlines())
    return int(values["direct_cache_hit"]) + int(values["preprocessed_cache_hit"])

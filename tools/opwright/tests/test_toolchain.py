"""GPU targets as everyone writes them, and the compiler cache that is used."""

from pathlib import Path

import pytest
from opwright.build import toolchain
from opwright.build.project import BuildError, Project

MATRIX = '[toolkit."12.9"]\ntargets = ["7.0"]\n[toolkit."13.0"]\ntargets = ["7.5+PTX", "9.0"]\n'
PROJECT = Project(Path("/no/such/project"), "my_ext", "0")  # without a matrix, as an sdist


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "include").mkdir()
    (tmp_path / "include/cuda_runtime_api.h").write_text("#define CUDART_VERSION  13000\n")
    return tmp_path


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("8.0;9.0+PTX", ["8.0", "9.0+PTX"]),
        ("8.0 8.6, 9.0a", ["8.0", "8.6", "9.0a"]),
        ("Hopper", ["9.0+PTX"]),
        ("Ampere;8.0;9.0", ["8.0", "8.6+PTX", "9.0"]),
        ("native", ["8.6", "9.0"]),
        ("native;9.0;10.0", ["8.6", "9.0", "10.0"]),
    ],
)
def test_targets(home: Path, monkeypatch: pytest.MonkeyPatch, written: str, meant: list[str]):
    monkeypatch.setattr(toolchain.machine, "gpu_targets", lambda: ["8.6", "9.0"])
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", written)
    assert toolchain.targets(PROJECT, home) == meant


def test_the_matrix_decides_where_nothing_is_written(home: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", " ")
    (home / "ci").mkdir()
    (home / "ci/matrix.toml").write_text(MATRIX)
    project = Project(home, "my_ext", "0")
    assert toolchain.targets(project, home) == ["7.5+PTX", "9.0"]
    (home / "include/cuda_runtime_api.h").write_text("#define CUDART_VERSION  11080\n")
    monkeypatch.setattr(toolchain.machine, "gpu_targets", lambda: ["9.0"])
    assert toolchain.targets(project, home) == ["9.0"], "of a major that the matrix does not name"


def test_native_without_a_gpu(home: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(toolchain.machine, "gpu_targets", list)
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "native")
    with pytest.raises(BuildError, match="sees no GPU here; name the target"):
        toolchain.targets(PROJECT, home)


def test_a_host_compiler_that_nvcc_supports(home: Path, monkeypatch: pytest.MonkeyPatch):
    """Debian testing has g++ 16, and CUDA 13.0 supports 15 at most."""
    (home / "include/crt").mkdir()
    header = home / "include/crt/host_config.h"
    header.write_text("#error -- unsupported GNU version! gcc versions later than 15 are not ...\n")
    for name, version in (("c++", "16.1.0"), ("g++-14", "14.3.0")):
        (home / name).write_text(f'#!/bin/sh\necho "{name} (Debian {version}-3) {version}"\n')
        (home / name).chmod(0o755)
    monkeypatch.setenv("CUDA_HOME", str(home))
    monkeypatch.setenv("PATH", str(home))
    monkeypatch.delenv("CXX", raising=False)
    assert toolchain.host_compiler() == "g++-14"
    (home / "g++-14").unlink()
    assert toolchain.host_compiler() == "g++-15"  # which the build asks for
    header.write_text("#error -- unsupported GNU version! gcc versions later than 16 are not ...\n")
    assert toolchain.host_compiler() is None


def test_the_cache_that_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("OPWRIGHT_CACHE", raising=False)
    assert toolchain.cache_launcher(tmp_path) == []
    for name in ("sccache", "ccache"):
        (tmp_path / name).touch(mode=0o755)
        assert toolchain.cache_launcher(tmp_path)[-1] == str(tmp_path / name)
    monkeypatch.setenv("OPWRIGHT_CACHE", "sccache")
    assert toolchain.cache_launcher(tmp_path)[-1] == str(tmp_path / "sccache")
    monkeypatch.setenv("OPWRIGHT_CACHE", "off")
    assert toolchain.cache_launcher(tmp_path) == []
    (tmp_path / "ccache").unlink()
    monkeypatch.setenv("OPWRIGHT_CACHE", "ccache")
    with pytest.raises(BuildError, match="no ccache on PATH; install it"):
        toolchain.cache_program()


@pytest.mark.parametrize(("seen", "chosen"), [(["9.0"], ["9.0"]), ([], toolchain.EVERY_GPU)])
def test_an_sdist_is_built_for_this_machine(
    home: Path, monkeypatch: pytest.MonkeyPatch, seen: list[str], chosen: list[str]
):
    monkeypatch.delenv("TORCH_CUDA_ARCH_LIST", raising=False)
    monkeypatch.setattr(toolchain.machine, "gpu_targets", lambda: seen)
    assert toolchain.targets(PROJECT, home) == chosen


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("hopper", "'hopper' is not a GPU target; write targets as TORCH_CUDA_ARCH_LIST does"),
        ("9.0;5.0", r"CUDA 13.0 does not build for 5.0; it builds for 7.5, 9.0$"),
    ],
)
def test_a_target_that_there_is_not(
    home: Path, monkeypatch: pytest.MonkeyPatch, written: str, message: str
):
    (home / "bin").mkdir()
    (home / "bin/nvcc").write_text("#!/bin/sh\necho compute_75\necho compute_90\n")
    (home / "bin/nvcc").chmod(0o755)
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", written)
    with pytest.raises(BuildError, match=message):
        toolchain.targets(PROJECT, home)


def test_a_toolkit_without_headers(tmp_path: Path):
    """As in conda, which keeps them in targets/x86_64-linux/include."""
    with pytest.raises(BuildError, match=r"has no include/cuda_runtime_api\.h .*by CUDA_HOME"):
        toolchain.toolkit_version(tmp_path)


@pytest.mark.parametrize("written", ["abc", "0", "-1", "1.5"])
def test_jobs_that_are_no_number(monkeypatch: pytest.MonkeyPatch, written: str):
    monkeypatch.setenv("MAX_JOBS", written)
    with pytest.raises(
        BuildError, match=f"MAX_JOBS={written} is not a number of jobs; give one, or"
    ):
        toolchain.max_jobs()


@pytest.mark.parametrize("system", ["Windows", "Darwin"])
def test_another_system(monkeypatch: pytest.MonkeyPatch, system: str):
    monkeypatch.setattr("platform.system", lambda: system)
    with pytest.raises(
        BuildError, match=f"on Linux alone, and this is {system}; on Windows, build in WSL 2"
    ):
        toolchain.target_machine()


@pytest.mark.parametrize(("said", "rocm"), [("None", False), ("'7.2.26015'", True)])
def test_a_torch_for_amd(tmp_path: Path, said: str, rocm: bool):
    (tmp_path / "version.py").write_text(
        f"hip: Optional[str] = {said}\nrocm: Optional[str] = None\n"
    )
    assert toolchain.is_rocm(tmp_path / "include") == rocm

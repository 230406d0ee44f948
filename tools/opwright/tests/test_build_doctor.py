"""The doctor: eight planted faults, each found and with the command that fixes it."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from clone import environment, make_clone
from opwright.build.toolchain import cuda_home

pytestmark = pytest.mark.skipif(cuda_home() is None, reason="needs nvcc")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    return make_clone(tmp_path / "clone")


def diagnose(clone: Path, **given: str) -> dict[str, tuple[str, str, str]]:
    """Check -> verdict, what was found, the command that fixes it."""
    done = subprocess.run(
        [sys.executable, "-m", "opwright", "doctor"],
        cwd=clone,
        env=environment(clone, **given),
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""
    findings = {}
    pattern = r"^(ok|note|FAULT) +(.{15}) (.*)(?:\n +fix: (.*))?$"
    for verdict, name, found, fix in re.findall(pattern, done.stdout, re.MULTILINE):
        findings[name.strip()] = (verdict, found, fix)
    faults = sum(verdict == "FAULT" for verdict, _, _ in findings.values())
    assert done.returncode == (1 if faults else 0)
    return findings


def program(folder: Path, name: str, script: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def path_without(folder: Path, *hidden: str) -> str:
    """A PATH with every program but the hidden ones."""
    folder.mkdir()
    inherited = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    for place in reversed(inherited.split(":")):
        for found in Path(place).glob("*"):
            if found.name not in hidden and os.access(found, os.X_OK):
                (folder / found.name).unlink(missing_ok=True)
                (folder / found.name).symlink_to(found)
    return str(folder)


def test_a_machine_that_is_well(clone: Path, tmp_path: Path):
    program(tmp_path / "bin", "nvidia-smi", "echo 'NVIDIA H200, 9.0, 580.1'")
    findings = diagnose(clone, PATH=f"{tmp_path}/bin:{environment(clone)['PATH']}")
    assert len(findings) == 9
    assert {name for name, finding in findings.items() if finding[0] == "FAULT"} == set()
    assert findings["GPU and driver"] == ("ok", "NVIDIA H200, 9.0, 580.1", "")


def test_no_ninja(clone: Path, tmp_path: Path):
    findings = diagnose(clone, PATH=path_without(tmp_path / "bin", "ninja"))
    assert findings["Ninja"][::2] == ("FAULT", "pip install ninja")


def test_an_old_ninja(clone: Path, tmp_path: Path):
    program(tmp_path / "bin", "ninja", "echo 1.10.1")
    verdict, found, fix = diagnose(clone, PATH=f"{tmp_path}/bin:{environment(clone)['PATH']}")[
        "Ninja"
    ]
    assert (verdict, fix) == ("note", "pip install 'ninja>=1.11'")
    assert "needs 1.11 or newer" in found


def test_wrong_host_compiler(clone: Path, tmp_path: Path):
    newer = program(tmp_path, "g++-99", "echo 'g++-99 (Debian 99.1.0-1) 99.1.0'")
    verdict, found, fix = diagnose(clone, CXX=str(newer))["host compiler"]
    assert verdict == "FAULT"
    limit = re.search(r"this toolkit supports g\+\+ up to (\d+)", found)
    assert limit
    assert fix == f"sudo apt-get install g++-{limit[1]} && export CXX=g++-{limit[1]}"


def test_mixed_cuda_majors(clone: Path, tmp_path: Path):
    program(tmp_path / "bin", "nvcc", "echo 'Cuda compilation tools, release 12.9, V12.9.86'")
    (tmp_path / "include").mkdir()
    header = tmp_path / "include/cuda_runtime_api.h"
    header.write_text("#define CUDART_VERSION  13000\n")
    verdict, found, fix = diagnose(clone, CUDA_HOME=str(tmp_path))["CUDA toolkit"]
    assert verdict == "FAULT"
    assert "mixed CUDA majors" in found
    assert fix.startswith("export CUDA_HOME=")

    header.write_text("#define CUDART_VERSION  12090\n")
    path = f"{cuda_home()}/bin:{environment(clone)['PATH']}"
    findings = diagnose(clone, CUDA_HOME=str(tmp_path), PATH=path)
    if shutil.which("nvcc", path=path) and cuda_home() != tmp_path:
        assert findings["CUDA toolkit"][0] == "FAULT"
        assert findings["CUDA toolkit"][2] == f"export PATH={tmp_path}/bin:$PATH"


def test_no_headers(clone: Path, tmp_path: Path):
    (tmp_path / "old/torch").mkdir(parents=True)
    (tmp_path / "old/torch/__init__.py").touch()
    findings = diagnose(clone, PYTHONPATH=str(tmp_path / "old"))
    assert findings["torch headers"][::2] == ("FAULT", "pip install 'torch>=2.10'")


@pytest.mark.skipif(not shutil.which("ccache"), reason="needs ccache")
def test_empty_cache(clone: Path, tmp_path: Path):
    verdict, found, fix = diagnose(clone, CCACHE_DIR=str(tmp_path / "new"))["compiler cache"]
    assert (verdict, fix) == ("note", "opwright dev")
    assert "is empty" in found
    findings = diagnose(clone, PATH=path_without(tmp_path / "bin", "ccache", "sccache"))
    assert findings["compiler cache"][::2] == ("note", "sudo apt-get install ccache")


def test_jobs_too_many(clone: Path):
    verdict, _, fix = diagnose(clone, MAX_JOBS="5000")["jobs"]
    assert verdict == "FAULT"
    assert re.fullmatch(r"export MAX_JOBS=\d+", fix)
    assert diagnose(clone, MAX_JOBS="1")["jobs"][0] == "ok"


def test_stale_build_folder(clone: Path):
    folder = clone / "build/dev"
    folder.mkdir(parents=True)
    (folder / "recipe.txt").write_text(f"made from {clone}\nmade with /usr/bin/env 1 1\ncmake\n")
    assert diagnose(clone)["build folders"] == (
        "FAULT",
        "build/dev is stale: /usr/bin/env has changed since",
        "opwright dev",
    )


def test_no_driver(clone: Path, tmp_path: Path):
    findings = diagnose(clone, PATH=path_without(tmp_path / "bin", "nvidia-smi"))
    assert findings["GPU and driver"][::2] == ("note", "sudo apt-get install nvidia-driver")
    broken = "NVIDIA-SMI has failed because it could not communicate with the NVIDIA driver."
    program(tmp_path / "driver", "nvidia-smi", f"echo '{broken}'; exit 9")
    findings = diagnose(clone, PATH=f"{tmp_path}/driver:{environment(clone)['PATH']}")
    assert findings["GPU and driver"][0] == "FAULT"
    assert broken in findings["GPU and driver"][1]


def test_code_for_a_gpu_of_the_same_major_version(clone: Path, tmp_path: Path) -> None:
    program(tmp_path / "bin", "nvidia-smi", "echo 8.6")
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    for targets, verdict in (("8.0", "ok"), ("9.0", "FAULT"), ("8.0+PTX", "ok")):
        findings = diagnose(clone, PATH=path, TORCH_CUDA_ARCH_LIST=targets)
        assert findings["GPU targets"][0] == verdict, findings["GPU targets"]

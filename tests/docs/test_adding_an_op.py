"""Tests docs/adding-an-op.md on a copy of this repository: it builds, and the op's tests pass."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs/adding-an-op.md").read_text()
STEPS = re.findall(r"^`(\S+)`:\n\n```(\w+)\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
WITH_CUDA = shutil.which("nvidia-smi") and shutil.which("nvcc")


def lines_of(language: str, text: str) -> list[str]:
    """Returns the lines that the step adds, without empty ones."""
    lines = [line for line in text.splitlines() if line.strip()]
    if language == "diff":
        lines = [line for line in lines if line.startswith("+") and not line.startswith("+++")]
    return lines


def test_three_files_and_sixty_lines():
    assert len(STEPS) == 3
    assert sum(len(lines_of(language, text)) for _, language, text in STEPS) <= 60


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    """Returns a copy of the repository's own files, with the guide applied."""
    pytest.importorskip("opwright", reason="needs opwright, which `make install` brings")
    folder = tmp_path_factory.mktemp("repository")
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    for path, language, text in STEPS:
        if language == "diff":
            subprocess.run(["patch", "-p1"], input=text, text=True, cwd=folder, check=True)
        else:
            (folder / path).write_text(text)
    return folder


def run(copy: Path, *command: str) -> str:
    environment = os.environ | {"PYTHONPATH": str(copy), "OPWRIGHT_CUDA": "off"}
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    if WITH_CUDA:
        environment |= {"OPWRIGHT_CUDA": "on", "TORCH_CUDA_ARCH_LIST": "native"}
    done = subprocess.run(
        [sys.executable, *command], cwd=copy, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.skipif(not shutil.which("patch"), reason="needs patch")
def test_it_builds_and_its_tests_pass(copy):
    run(copy, "setup.py", "--quiet", "build_cpp")
    (library,) = (copy / "build").glob("extension-*/lib/libcuda_ext_example.so")
    shutil.copy(library, copy / "cuda_ext_example")
    run(copy, "-m", "opwright", "runtime", "cuda_ext_example")
    doctor = run(copy, "-m", "cuda_ext_example")
    assert str(copy / "cuda_ext_example") in doctor
    assert re.search(r"Self-test: 7 ops", doctor)
    assert '"name": "scale_add"' in run(copy, "-m", "cuda_ext_example", "--smoke-spec")
    tests = ["tests/package/test_ops.py", "-k", "TestOps and scale_add"]
    passed = run(copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests)
    assert "passed" in passed
    assert "failed" not in passed

"""Tests the evidence from a GPU: made on a machine that has one, otherwise the committed evidence about the very bytes
of the wheel."""

import json
import os
import sys
from pathlib import Path

import pytest
from demo_wheel import make_wheel
from recorded import workspace
from repository import program
from wheelyard.core.digest import sha256
from wheelyard.core.job import Job, Needs
from wheelyard.problem import Problem
from wheelyard.steps import gpu
from wheelyard.tools import evidence

SMOKE = {"spec": "python -m my_ext --smoke-spec", "checks": [], "timing": None, "command": None}
JOB = Job("gpu", "x86_64", Needs("x86_64", gpu=True), {})


def run(folder: Path, about: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Runs the step on a machine without a GPU, in a project whose committed evidence is about the wheel with a given
    sha256."""
    monkeypatch.setenv("PATH", str(folder))
    committed = folder / evidence.FOLDER / "x86_64.json"
    committed.parent.mkdir(parents=True)
    committed.write_text(json.dumps({"sha256": about, "gpu": {"name": "a GPU"}}))
    given = {str(committed.relative_to(folder)): sha256(committed)}
    inputs = {"committed": given, "smoke": SMOKE, "import_name": "my_ext"}
    inputs["gpu_tests"] = {"command": "pytest tests", "files": "0"}
    return gpu.run(
        JOB, workspace(folder, {"wheel": [folder / "my_ext-1-py3-none-any.whl"]}, **inputs)
    )


def test_committed_evidence_of_these_bytes_is_handed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = tmp_path / "my_ext-1-py3-none-any.whl"
    wheel.write_bytes(b"a wheel")
    assert run(tmp_path, sha256(wheel), monkeypatch) == "x86_64.json: ran on a GPU"
    handed = json.loads((tmp_path / "job/out/evidence/gpu-x86_64.json").read_text())
    assert handed["sha256"] == sha256(wheel)


def test_without_a_gpu_and_without_evidence_it_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_ext-1-py3-none-any.whl").write_bytes(b"a wheel")
    with pytest.raises(Problem, match="sees no GPU") as problem:
        run(tmp_path, "0" * 64, monkeypatch)
    assert "smoke.py my_ext-1-py3-none-any.whl --import-name my_ext --spec-command" in str(
        problem.value
    )
    assert "--tests-command 'pytest tests' --tests FOLDER --evidence" in str(problem.value)
    assert "gpu_runner" in str(problem.value)


def test_a_torch_that_sees_no_gpu_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="is asked for a GPU")
    program(tmp_path, "nvidia-smi", "echo 9.0")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("TORCH_PYTHON", sys.executable)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    wheel = make_wheel(tmp_path, "plain_ext")
    told = {"smoke": {**SMOKE, "spec": None, "command": "true"}, "import_name": "plain_ext"}
    with pytest.raises(Problem, match="torch sees no GPU here"):
        gpu.run(JOB, workspace(tmp_path, {"wheel": [wheel]}, gpu_tests=None, **told))

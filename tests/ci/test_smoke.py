"""The smoke test sees what a wheel really does: right and wrong ops, with the wheel's own hash."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
from demo_wheel import make_wheel

from ci.project import ROOT

pytest.importorskip("torch", reason="runs ops")

SPEC = """
[smoke]
ops = [{ op = "plus", args = ["tensor", "tensor"], reference = "add" }]
dtypes = ["float32", "int64"]
timing = { op = "plus", dtype = "float32", elements = 1024 }
"""
MODULE = """
import torch
__version__ = "1.0"
@torch.library.custom_op("{name}::plus", mutates_args=())
def plus(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return {result}
"""


def smoke(folder: Path, name: str, result: str) -> tuple[int, dict[str, object], Path]:
    wheel = make_wheel(folder, name, module=MODULE.format(name=name, result=result))
    (folder / "matrix.toml").write_text(SPEC)
    evidence = folder / "evidence.json"
    command = [sys.executable, ROOT / "ci/smoke.py", wheel, "--spec", folder / "matrix.toml"]
    done = subprocess.run(
        [*command, "--evidence", evidence], capture_output=True, text=True, cwd=folder
    )
    assert evidence.exists(), done.stderr
    return done.returncode, json.loads(evidence.read_text()), wheel


def test_a_right_wheel_passes_and_is_named_by_its_hash(tmp_path: Path) -> None:
    code, evidence, wheel = smoke(tmp_path, "right_ext", "a + b")
    assert code == 0
    assert evidence["passed"] is True
    assert evidence["failures"] == []
    assert evidence["sha256"] == hashlib.sha256(wheel.read_bytes()).hexdigest()
    assert evidence["wheel"] == wheel.name


def test_an_op_that_loses_bits_is_caught_by_int64_inputs(tmp_path: Path) -> None:
    code, evidence, _ = smoke(tmp_path, "wrong_ext", "(a.float() + b.float()).to(a.dtype)")
    assert code == 1
    assert evidence["passed"] is False
    failures = evidence["failures"]
    assert isinstance(failures, list)
    assert [text.split()[:2] for text in failures] == [["plus", "int64"]]
    assert "_arange_case" in failures[0]

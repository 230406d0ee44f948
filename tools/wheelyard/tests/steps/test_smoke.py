"""The smoke test sees what a wheel really does: right and wrong ops, with the wheel's own hash."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from demo_wheel import make_wheel
from wheelyard.steps.smoke import PROGRAM

pytest.importorskip("torch", reason="runs ops")

MODULE = """
import torch
__version__ = "1.0"
@torch.library.custom_op("{name}::plus", mutates_args=())
def plus(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return {result}
"""


def smoke(folder: Path, name: str, result: str, *words: str) -> tuple[int, dict[str, Any], Path]:
    wheel = make_wheel(folder, name, module=MODULE.format(name=name, result=result))
    check = {
        "name": "plus",
        "call": f"torch.ops.{name}.plus(x, y)",
        "reference": "torch.add(x, y)",
        "dtypes": ["float32", "int64"],
    }
    spec = {"checks": [check], "timing": {"name": "plus"}}
    (folder / "spec.json").write_text(json.dumps(spec))
    evidence = folder / "evidence.json"
    told = words or ("--spec", str(folder / "spec.json"))
    command = [sys.executable, PROGRAM, wheel, *told, "--evidence", evidence]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    seen = json.loads(evidence.read_text()) if evidence.exists() else {"stderr": done.stderr}
    return done.returncode, seen, wheel


def test_a_right_wheel_passes_and_is_named_by_its_hash(tmp_path: Path) -> None:
    code, evidence, wheel = smoke(tmp_path, "right_ext", "a + b")
    assert code == 0, evidence
    assert evidence["passed"] is True
    assert evidence["failures"] == []
    assert evidence["checks"] == {"plus float32 cpu shapes": 5, "plus int64 cpu shapes": 10}
    assert evidence["sha256"] == hashlib.sha256(wheel.read_bytes()).hexdigest()
    assert evidence["program"] == hashlib.sha256(PROGRAM.read_bytes()).hexdigest()
    assert evidence["wheel"] == wheel.name


def test_an_op_that_loses_bits_is_caught_by_int64_inputs(tmp_path: Path) -> None:
    code, evidence, _ = smoke(tmp_path, "wrong_ext", "(a.double() + b.double()).to(a.dtype)")
    assert code == 1
    assert evidence["passed"] is False
    assert [text.split()[:2] for text in evidence["failures"]] == [["plus", "int64"]]


def test_a_command_may_stand_for_the_checks(tmp_path: Path) -> None:
    command = "python -c 'import commanded_ext; assert commanded_ext.plus'"
    code, evidence, _ = smoke(tmp_path, "commanded_ext", "a + b", "--command", command)
    assert code == 0, evidence
    assert evidence["command"] == command
    code, seen, _ = smoke(tmp_path, "commanded_ext", "a + b", "--command", "python -c 'assert 0'")
    assert code == 1
    assert seen["command"] == command, "the evidence of the first run is left alone"


def test_the_package_itself_may_say_what_to_check(tmp_path: Path) -> None:
    spec = tmp_path / "spec.json"
    said = ("--spec-command", f"cat {spec}")
    code, evidence, _ = smoke(tmp_path, "saying_ext", "a + b", *said)
    assert code == 0, evidence
    assert evidence["checks"]


def test_a_wheel_that_cannot_be_imported_fails(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "broken_ext", module="raise ImportError('undefined symbol')")
    done = subprocess.run([sys.executable, PROGRAM, wheel], capture_output=True, text=True)
    assert done.returncode == 1
    assert "undefined symbol" in done.stderr

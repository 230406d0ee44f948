"""Tests ci/torch.lock: the hashes of each torch and of its dependencies, as pip takes them."""

from pathlib import Path

import pytest
from wheelyard.plan import torch_lock
from wheelyard.problem import Problem

TEXT = """# a comment
torch==2.10.0 \\
    --hash=sha256:aa \\
    --hash=sha256:bb
sympy==1.14.0 ; sys_platform == 'linux' --hash=sha256:dd
torch==2.15.0 \\
    --hash=sha256:cc
"""


def lock(root: Path, text: str) -> torch_lock.Pins:
    (root / "ci").mkdir()
    (root / torch_lock.FILE).write_text(text)
    return torch_lock.load(root)


def test_each_release_has_its_own_and_what_it_needs(tmp_path: Path) -> None:
    pins = lock(tmp_path, TEXT)
    torch = "torch==2.10.0 --hash=sha256:aa --hash=sha256:bb"
    needs = "sympy==1.14.0 ; sys_platform == 'linux' --hash=sha256:dd"
    assert torch_lock.requirements("2.10.0", pins) == f"{torch}\n{needs}"
    assert torch_lock.requirements("2.10.0", pins, alone=True) == torch
    assert torch_lock.requirements("2.15.0", pins) == "torch==2.15.0 --hash=sha256:cc"


def test_one_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(Problem, match=r"no torch 2\.16\.0, .* it has 2\.10\.0, 2\.15\.0"):
        torch_lock.requirements("2.16.0", lock(tmp_path, TEXT))


def test_a_project_need_not_pin(tmp_path: Path) -> None:
    assert torch_lock.requirements("2.16.0", torch_lock.load(tmp_path)) == "torch==2.16.0"

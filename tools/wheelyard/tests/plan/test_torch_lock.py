"""ci/torch.lock: the hashes of each torch, as pip takes them."""

from pathlib import Path

import pytest
from wheelyard.plan import torch_lock
from wheelyard.problem import Problem

TEXT = """torch==2.10.0 \\
    --hash=sha256:aa \\
    --hash=sha256:bb
torch==2.15.0 \\
    --hash=sha256:cc
"""


def lock(root: Path, text: str) -> torch_lock.Hashes:
    (root / "ci").mkdir()
    (root / torch_lock.FILE).write_text(text)
    return torch_lock.load(root)


def test_each_release_has_its_own(tmp_path: Path) -> None:
    hashes = lock(tmp_path, TEXT)
    line = "torch==2.10.0 --hash=sha256:aa --hash=sha256:bb"
    assert torch_lock.requirement("2.10.0", hashes) == line
    assert torch_lock.requirement("2.15.0", hashes) == "torch==2.15.0 --hash=sha256:cc"


def test_one_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(Problem, match=r"no torch 2\.16\.0, .* it has 2\.10\.0, 2\.15\.0"):
        torch_lock.requirement("2.16.0", lock(tmp_path, TEXT))


def test_a_project_need_not_pin(tmp_path: Path) -> None:
    assert torch_lock.requirement("2.16.0", torch_lock.load(tmp_path)) == "torch==2.16.0"

"""What counts as proof that a wheel ran on a GPU."""

import json
from pathlib import Path

import pytest

from ci import evidence

GOOD = {"sha256": "abc", "gpu": {"name": "NVIDIA H200"}, "passed": True, "torch": "2.11.0"}


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Where a person commits evidence, and where a job hands it on."""
    committed, handed = tmp_path / "committed", tmp_path / "wheelhouse/evidence"
    for folder in (committed, handed):
        folder.mkdir(parents=True)
    monkeypatch.setattr(evidence, "FOLDER", committed)
    monkeypatch.setenv("WHEELHOUSE", str(handed.parent))
    return [committed, handed]


@pytest.mark.parametrize("change", [{}, {"sha256": "def"}, {"gpu": None}, {"passed": False}])
def test_these_bytes_on_a_gpu_and_passed(folders: list[Path], change: dict[str, object]) -> None:
    for folder in folders:
        (folder / "x86_64.json").write_text(json.dumps({**GOOD, **change}))
        assert len(evidence.on_gpu("abc")) == (0 if change else 1)


def test_two_machines_are_two_proofs(folders: list[Path]) -> None:
    for folder, torch in zip(folders, ("2.11.0", "2.15.0"), strict=True):
        (folder / "x86_64.json").write_text(json.dumps({**GOOD, "torch": torch}))
    assert [seen["torch"] for seen in evidence.on_gpu("abc")] == ["2.11.0", "2.15.0"]

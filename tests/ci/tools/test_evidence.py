"""What counts as proof that a wheel ran on a GPU."""

import json
from pathlib import Path

import pytest
from wheelyard.tools import evidence

GOOD = {
    "sha256": "abc",
    "gpu": {"name": "NVIDIA H200"},
    "passed": True,
    "torch": "2.11.0",
    "checks": {"add float32 cuda": 5},
}
BAD = [{"sha256": "def"}, {"gpu": None}, {"passed": False}, {"checks": {}}, {"checks": 0}]


@pytest.mark.parametrize("change", [{}, {"checks": 75}, {"checks": {}, "command": "x"}, *BAD])
def test_these_bytes_on_a_gpu_checked_and_passed(tmp_path: Path, change: dict[str, object]) -> None:
    file = tmp_path / "x86_64.json"
    file.write_text(json.dumps({**GOOD, **change}))
    assert len(evidence.on_gpu("abc", [file])) == (0 if change in BAD else 1)


def test_two_machines_are_two_proofs_and_a_copy_is_none(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("a.json", "b.json", "c.json")]
    for file, torch in zip(files, ("2.11.0", "2.15.0", "2.15.0"), strict=True):
        file.write_text(json.dumps({**GOOD, "torch": torch}))
    assert [seen["torch"] for seen in evidence.on_gpu("abc", files)] == ["2.11.0", "2.15.0"]


@pytest.mark.parametrize("text", ["", "[]", "null", "{"])
def test_a_file_that_a_full_disk_left_is_no_evidence(tmp_path: Path, text: str) -> None:
    file = tmp_path / "empty.json"
    file.write_text(text)
    assert evidence.on_gpu("abc", [file]) == []

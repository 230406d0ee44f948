"""Tests when and where jobs ran, without the pauses, and which of them the end waited for."""

from pathlib import Path
from typing import Any

import pytest
from wheelyard.core.record import Record
from wheelyard.report import facts


def entry(
    machine: str, began: float, seconds: float, outputs: str = "", **inputs: Any
) -> dict[str, Any]:
    return {
        "verdict": "passed",
        "seconds": seconds,
        "inputs": inputs,
        "outputs": {outputs: "0" * 64} if outputs else {},
        "facts": {"ran": {"machine": machine, "began": began}},
    }


@pytest.fixture
def record(tmp_path: Path) -> Record:
    """Returns a record of two builds on two machines, one of them repaired a night later; publishing waited for
    that."""
    record = Record(tmp_path)
    record.jobs = {
        "build/a": entry("one", 1000, 10, "a.whl"),
        "build/b": entry("two", 1000, 30, "b.whl"),
        "repair/b": entry("one", 50_000, 5, "b-new.whl", wheel={"b.whl": "0" * 64}),
        "publish/x": entry("here", 50_005, 1, judged={"build/a": "1", "repair/b": "2"}),
    }
    return record


def test_pauses_are_left_out(record: Record) -> None:
    found = {stay.job: (stay.began, stay.ended) for stay in facts.stays(record)}
    assert found["build/b"] == (0, 30)
    assert found["repair/b"] == (30, 35)
    assert found["publish/x"] == (35, 36)


def test_what_bounded_it(record: Record) -> None:
    chain = facts.bounding(record, facts.stays(record))
    assert [stay.job for stay in chain] == ["build/b", "repair/b", "publish/x"]


def test_a_record_of_an_older_version_has_none(tmp_path: Path) -> None:
    record = Record(tmp_path)
    record.jobs = {"build/a": {**entry("one", 1, 1), "facts": {"ran": "yes"}}}
    assert facts.stays(record) == facts.bounding(record, []) == []

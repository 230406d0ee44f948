"""Tests the timeline: which job ran where and when, without the pauses, and the jobs that the end waited for."""

from pathlib import Path
from typing import Any

import pytest
from wheelyard.core.record import Record
from wheelyard.report import timeline


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
    found = {stay.job: (stay.began, stay.ended) for stay in timeline.stays(record)}
    assert found["build/b"] == (0, 30)
    assert found["repair/b"] == (30, 35)
    assert found["publish/x"] == (35, 36)


def test_what_bounded_it(record: Record) -> None:
    chain = timeline.bounding(record, timeline.stays(record))
    assert [stay.job for stay in chain] == ["build/b", "repair/b", "publish/x"]


def test_jobs_side_by_side_on_one_machine_have_rows_of_their_own() -> None:
    stays = [
        timeline.Stay("a", "m", 0, 5),
        timeline.Stay("b", "m", 1, 2),
        timeline.Stay("c", "m", 6, 7),
    ]
    assert [[s.job for s in row] for row in timeline.lanes(stays)["m"]] == [["a", "c"], ["b"]]


def test_the_picture_names_jobs_and_machines(record: Record) -> None:
    page = timeline.html(record)
    assert "36 s in all" in page
    assert "<title>repair/b: 5.0 s</title>" in page
    assert ">two</text>" in page


def test_a_record_of_an_older_version_has_none(tmp_path: Path) -> None:
    record = Record(tmp_path)
    record.jobs = {"build/a": {**entry("one", 1, 1), "facts": {"ran": "yes"}}}
    assert timeline.html(record) == ""

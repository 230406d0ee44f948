"""Tests which job may be next: the jobs that it waits for are over, there is room, and no earlier step failed."""

from collections.abc import Hashable
from dataclasses import dataclass

from recorded import job
from wheelyard.core.job import Job, made
from wheelyard.run.runner import Waiting


@dataclass
class Place:
    step_by_step: bool
    most: int = 9

    def kind(self, job: Job) -> Hashable:
        return job.step == "gpu"

    def room(self, kind: Hashable) -> int:
        return 1 if kind else self.most


def started(waiting: Waiting) -> list[str]:
    found = []
    while job := waiting.next():
        found.append(job.name)
    return found


JOBS = [
    job("build/a"),
    job("build/b"),
    job("repair/a", {"wheel": made("build/a")}),
    job("repair/b", {"wheel": made("build/b")}),
]


def test_a_job_starts_when_what_it_waits_for_is_over() -> None:
    waiting = Waiting(JOBS, Place(step_by_step=False))
    assert started(waiting) == ["build/a", "build/b"]
    waiting.over(JOBS[0], passed=True)
    assert started(waiting) == ["repair/a"]


def test_step_by_step_it_also_waits_for_the_step_before() -> None:
    waiting = Waiting(JOBS, Place(step_by_step=True))
    started(waiting)
    waiting.over(JOBS[0], passed=True)
    assert started(waiting) == []
    waiting.over(JOBS[1], passed=True)
    assert started(waiting) == ["repair/a", "repair/b"]


def test_after_a_failure_nothing_of_a_later_step_starts() -> None:
    waiting = Waiting(JOBS, Place(step_by_step=False, most=1))
    assert started(waiting) == ["build/a"]
    waiting.over(JOBS[0], passed=False)
    assert started(waiting) == ["build/b"], "its own step goes on"
    waiting.over(JOBS[1], passed=True)
    assert started(waiting) == []


def test_a_full_kind_does_not_hold_up_another() -> None:
    jobs = [job("gpu/a"), job("gpu/b"), job("verify/a")]
    waiting = Waiting(jobs, Place(step_by_step=False))
    assert started(waiting) == ["verify/a", "gpu/a"]


def test_what_was_begun_is_finished_first() -> None:
    waiting = Waiting(JOBS, Place(step_by_step=False, most=1))
    assert started(waiting) == ["build/a"]
    waiting.over(JOBS[0], passed=True)
    assert started(waiting) == ["repair/a"]

"""Runs the jobs that are not done yet, and continues a run that was stopped."""

import errno
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Protocol

from wheelyard.core import engine, guard
from wheelyard.core.disk import temporary_files_in
from wheelyard.core.job import Graph, Job
from wheelyard.core.lock import only_one
from wheelyard.core.progress import Display, StepDisplay
from wheelyard.core.record import Facts, Record
from wheelyard.problem import Problem
from wheelyard.run.waiting import Room, Waiting

LOOK_AGAIN_SECONDS = 2  # between looks whether a place has more room
THREADS = 1024  # one for each job that runs, here or on another machine


@dataclass(frozen=True)
class Ran:
    """A passed job: where it ran, and since when (seconds since 1970). Its files are in `out` of its folder."""

    verdict: str  # for people
    machine: str
    began: float


class Place(Room, Protocol):
    """The machines that jobs run on: this one, or many."""

    def lacks(self, job: Job) -> str | None:
        """Returns what is missing to run a job; None if nothing."""
        ...

    def run(self, job: Job, inputs: Facts, folder: Path, log: Path) -> Ran: ...

    def stop(self) -> None:
        """Ends all jobs at once, because someone stopped the run or it cannot continue."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class Runner:
    """One run in one release folder."""

    graph: Graph
    record: Record
    display: Display
    place: Place

    def run(self, jobs: list[Job], *, force: bool) -> None:
        """Runs the jobs; `force` repeats finished ones. Raises if one fails."""
        with self.display.live():
            try:
                todo = jobs if force else self._unfinished(jobs)
                self._check_needs(todo)
                with temporary_files_in(self.record.folder / "work"):
                    self._run(jobs, todo, force)
            finally:
                self.place.close()

    def _unfinished(self, jobs: list[Job]) -> list[Job]:
        """Returns the jobs that are not done, and those that depend on one of them, as its output may be new."""
        found: dict[str, Job] = {}
        for job in jobs:
            if not found.keys().isdisjoint(job.after) or not self.record.is_done(job):
                found[job.name] = job
        return list(found.values())

    def _check_needs(self, jobs: list[Job]) -> None:
        """Raises, before anything starts, if a job needs what its place lacks."""
        missing: dict[str, list[str]] = {}
        for job in jobs:
            if lack := self.place.lacks(job):
                missing.setdefault(lack, []).append(job.name)
        if missing:
            raise Problem("\n".join(f"{_some(names)} {lack}" for lack, names in missing.items()))

    def _run(self, jobs: list[Job], todo: list[Job], force: bool) -> None:
        waiting = Waiting(todo, self.place)
        bars = Bars(self.display, jobs, waiting)
        problems: dict[str, list[str]] = {}  # what went wrong, and in which jobs
        with ThreadPoolExecutor(max_workers=THREADS) as pool:
            running: dict[Future[None], Job] = {}
            over: SimpleQueue[Future[None]] = SimpleQueue()
            try:
                while True:
                    while job := waiting.next():
                        if not force and self.record.is_done(job):
                            # Its inputs were made again, and are the same.
                            bars.of(job.step).found_unchanged()
                            waiting.over(job, passed=True)
                        else:
                            future = pool.submit(self._run_job, job, bars.of(job.step))
                            running[future] = job
                            future.add_done_callback(over.put)
                    bars.settle()
                    if not running:
                        break
                    for future in _all_of(over):
                        job, error = running.pop(future), future.exception()
                        if error is not None:
                            if not isinstance(error, Problem):
                                raise error
                            problems.setdefault(str(error), []).append(job.name)
                            bars.failed.add(job.step)
                        waiting.over(job, passed=error is None)
            except BaseException:  # even when someone stops us: no program may run on
                self.place.stop()
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        bars.close()
        if problems:
            lines = (f"{', '.join(names)}: {problem}" for problem, names in problems.items())
            raise Problem("\n".join(lines))

    def _run_job(self, job: Job, display: StepDisplay) -> None:
        own = job.name.replace("/", "-")
        log = self.record.folder / f"logs/{own}.log"
        log.parent.mkdir(exist_ok=True)
        log.write_bytes(b"")
        self.record.check_ready(job, self.graph)
        inputs = self.record.resolve(job)
        began = time.monotonic()
        display.started(job.unit)
        verdict = "failed"
        folder = Path(tempfile.mkdtemp(prefix=f"{own}-", dir=self.record.folder / "work"))
        try:
            ran = self.place.run(job, inputs, folder, log)
            seconds = time.monotonic() - began
            where = {"machine": ran.machine, "began": round(ran.began, 3)}
            self.record.passed(
                job, inputs, folder / "out", {"verdict": ran.verdict, "ran": where}, seconds
            )
            verdict = ran.verdict
        except Problem as problem:
            self.record.failed(job, inputs, str(problem), time.monotonic() - began)
            raise
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            display.finished(job.unit, time.monotonic() - began, verdict)


class Bars:
    """A bar for each step, from its first job's start until its last is over."""

    def __init__(self, display: Display, jobs: list[Job], waiting: Waiting) -> None:
        self.failed: set[str] = set()
        self._display, self._waiting = display, waiting
        self._total = Counter(job.step for job in jobs)
        self._bars: dict[str, StepDisplay] = {}

    def of(self, step: str) -> StepDisplay:
        if step not in self._bars:
            reused = self._total[step] - self._waiting.left(step)
            self._bars[step] = StepDisplay(self._display, step, self._total[step], reused)
        return self._bars[step]

    def settle(self) -> None:
        """Closes the bars of steps that are over. The bar of a step with nothing to do closes after all before it."""
        earlier_are = True
        for step in self._total:
            is_over = not self._waiting.left(step)
            if is_over and (step in self._bars or earlier_are):
                self.of(step).close("failed" if step in self.failed else "passed")
            earlier_are = earlier_are and is_over

    def close(self) -> None:
        for step, bar in self._bars.items():
            bar.close("failed" if step in self.failed else "stopped")


def _all_of(over: SimpleQueue[Future[None]]) -> Iterator[Future[None]]:
    """Yields the jobs that have ended; waits a while for the first."""
    try:
        yield over.get(timeout=LOOK_AGAIN_SECONDS)
        while True:
            yield over.get_nowait()
    except Empty:
        return


def _some(names: list[str]) -> str:
    more = f" (and {len(names) - 1} more)" if len(names) > 1 else ""
    return f"{names[0]}{more}"


@contextmanager
def only_run(folder: Path) -> Iterator[Record]:
    """Locks a release folder for one release at a time, and yields its record, which nobody else can write now."""
    running = f"another release is running in {folder}; wait for it, or stop it"
    with only_one(folder, running):
        guard.end_leftovers(folder / "work")
        guard.run_after_a_kill(engine.after_a_kill())
        shutil.rmtree(folder / "work", ignore_errors=True)  # left by a run that was killed
        try:
            yield Record(folder)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            free = shutil.disk_usage(folder).free >> 20
            raise Problem(
                f"the disk is full ({free} MiB left below {folder}); free some space, then run the same "
                "command again: it continues from here"
            ) from None

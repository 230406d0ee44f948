"""Runs the jobs that are not done yet, and continues a run that was stopped."""

import errno
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Hashable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Protocol

from wheelyard.core import engine, guard
from wheelyard.core.disk import temporary_files_in
from wheelyard.core.job import Graph, Job
from wheelyard.core.lock import only_one
from wheelyard.core.progress import Display
from wheelyard.core.record import Facts, Record
from wheelyard.problem import Problem, some

LOOK_AGAIN_SECONDS = 2  # between looks whether a place has more room
THREADS = 1024  # one for each job that runs, here or on another machine


@dataclass(frozen=True)
class Ran:
    """A passed job: where it ran, and since when (seconds since 1970). Its files are in `out` of its folder."""

    verdict: str  # for people
    machine: str
    began: float


class Place(Protocol):
    """The machines that jobs run on: this one, or many."""

    @property
    def step_by_step(self) -> bool:
        """Whether a step begins only after the one before it is over."""
        ...

    def kind(self, job: Job) -> Hashable:
        """Returns the kind of a job; jobs of one kind compete for the same room."""
        ...

    def room(self, kind: Hashable) -> int:
        """Returns how many jobs of a kind the place takes at the same time."""
        ...

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
        try:
            todo = jobs if force else self._unfinished(jobs)
            self._check_needs(todo)
            left = {job.step for job in todo}
            for step, count in Counter(job.step for job in jobs if job.step not in left).items():
                self.display.say(f"{step:8} unchanged ({count})")
            folder = self.record.folder / "work"
            with self.display.live(len(todo)), temporary_files_in(folder):
                self._run(todo, force)
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
            raise Problem("\n".join(f"{some(names, 1)} {lack}" for lack, names in missing.items()))

    def _run(self, todo: list[Job], force: bool) -> None:
        waiting = Waiting(todo, self.place)
        problems: dict[str, list[str]] = {}  # what went wrong, and in which jobs
        with ThreadPoolExecutor(max_workers=THREADS) as pool:
            running: dict[Future[None], Job] = {}
            try:
                while True:
                    while job := waiting.next():
                        if not force and self.record.is_done(job):
                            # Its inputs were made again, and are the same.
                            self.display.ended(job.name, "unchanged")
                            waiting.over(job, passed=True)
                        else:
                            running[pool.submit(self._run_job, job)] = job
                    if not running:
                        break
                    for future in wait(running, LOOK_AGAIN_SECONDS, FIRST_COMPLETED).done:
                        job, error = running.pop(future), future.exception()
                        if error is not None:
                            if not isinstance(error, Problem):
                                raise error
                            problems.setdefault(str(error), []).append(job.name)
                        waiting.over(job, passed=error is None)
            except BaseException:  # even when someone stops us: no program may run on
                self.place.stop()
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        if problems:
            lines = (f"{', '.join(names)}: {problem}" for problem, names in problems.items())
            raise Problem("\n".join(lines))

    def _run_job(self, job: Job) -> None:
        own = job.name.replace("/", "-")
        log = self.record.folder / f"logs/{own}.log"
        log.parent.mkdir(exist_ok=True)
        log.write_bytes(b"")
        self.record.check_ready(job, self.graph)
        inputs = self.record.resolve(job)
        began = time.monotonic()
        self.display.started(job.name)
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
            self.display.ended(job.name, f"{time.monotonic() - began:7.1f} s  {verdict}")


class Waiting:
    """The jobs that have not started. Once a job has failed, no later step starts, and no job that needs the failed
    one."""

    def __init__(self, jobs: list[Job], room: Place) -> None:
        self._room = room
        self._jobs = {job.name: job for job in jobs}
        self._kind = {job.name: room.kind(job) for job in jobs}
        self._order = TopologicalSorter({j.name: self._jobs.keys() & set(j.after) for j in jobs})
        self._order.prepare()
        steps = list(dict.fromkeys(job.step for job in jobs))
        self._number = {step: number for number, step in enumerate(steps)}
        self._left = Counter(job.step for job in jobs)
        self._last = len(steps)  # no step after this one starts
        names = [*self._jobs]
        if not room.step_by_step:
            # Later steps get priority, on the machine that has their files and image.
            names.sort(key=lambda name: -self._number[self._jobs[name].step])
        self._rank = {name: rank for rank, name in enumerate(names)}
        self._ready = sorted(self._order.get_ready(), key=self._rank.__getitem__)
        self._running: Counter[Hashable] = Counter()

    def next(self) -> Job | None:
        """Returns a job that may start now; it counts as running until it is over."""
        full: set[Hashable] = set()
        for name in self._ready:
            job, kind = self._jobs[name], self._kind[name]
            if kind in full or not self._is_steps_turn(job.step):
                continue
            if self._running[kind] >= self._room.room(kind):
                full.add(kind)
                continue
            self._ready.remove(name)
            self._running[kind] += 1
            return job
        return None

    def over(self, job: Job, *, passed: bool) -> None:
        self._running[self._kind[job.name]] -= 1
        self._left[job.step] -= 1
        if not passed:
            self._last = min(self._last, self._number[job.step])
            return
        self._order.done(job.name)
        self._ready = sorted((*self._ready, *self._order.get_ready()), key=self._rank.__getitem__)

    def _is_steps_turn(self, step: str) -> bool:
        number = self._number[step]
        if number > self._last:
            return False
        earlier = [other for other, n in self._number.items() if n < number]
        return not (self._room.step_by_step and any(self._left[other] for other in earlier))


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

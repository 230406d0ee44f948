"""Runs jobs on this machine, in threads: what is not done yet, step by step, and goes on where a stopped run was."""

import errno
import fcntl
import os
import platform
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

from wheelyard.core import engine as containers
from wheelyard.core import shell
from wheelyard.core.engine import Engine
from wheelyard.core.graph import Graph
from wheelyard.core.job import Job
from wheelyard.core.progress import Display, StepDisplay
from wheelyard.core.record import Record
from wheelyard.core.workspace import Workspace
from wheelyard.problem import Problem

WAITING = 2  # jobs beyond the number of cores: some always wait for the network

StepModule = Callable[[str], ModuleType]


@dataclass
class Here:
    """This machine: its container engine, found or started when the first job needs it."""

    wheelhouse: Path
    display: Display
    _engine: Engine | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def engine(self) -> Engine:
        with self._lock:
            self._engine = self._engine or containers.ready(self.wheelhouse, self.say)
            return self._engine

    def say(self, text: str) -> None:
        self.display.say(text)

    def close(self) -> None:
        if self._engine is not None:
            self._engine.leave(self.say)

    def lacks(self, job: Job) -> str | None:
        """What this machine lacks to run a job."""
        if job.needs.arch not in (None, platform.machine()):
            return f"needs a machine of {job.needs.arch}, and this is {platform.machine()}"
        if job.needs.gpu and not _has_gpu():
            return "needs a GPU, and nvidia-smi sees none here; run it on a machine that has one"
        return None


@dataclass(frozen=True)
class Local:
    """One run in one wheelhouse, for the project whose files lie below `project`."""

    graph: Graph
    record: Record
    project: Path
    module: StepModule  # the module of a step, by its name
    display: Display
    here: Here

    def run(self, jobs: list[Job], *, force: bool) -> None:
        """Runs the jobs, a step after the other; `force` repeats finished ones. Raises where one fails."""
        with self.display.live():
            try:
                for step in dict.fromkeys(job.step for job in jobs):
                    self._run_step(step, [job for job in jobs if job.step == step], force)
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                free = shutil.disk_usage(self.record.wheelhouse).free >> 20
                raise Problem(
                    f"the disk is full ({free} MiB left below {self.record.wheelhouse}); free some space, "
                    "then run the same command again: it goes on from here"
                ) from None
            finally:
                shell.stop_all()
                shell.stopping.clear()
                self.here.close()

    def _run_step(self, name: str, jobs: list[Job], force: bool) -> None:
        todo = jobs if force else self._unfinished(jobs)
        for job in todo:  # before anything starts
            if missing := self.here.lacks(job):
                raise Problem(f"{job.name} {missing}")
        display = self.display.step(name, len(jobs), len(jobs) - len(todo))
        problems: dict[str, list[str]] = {}  # what went wrong, and in which jobs
        with ThreadPoolExecutor(max_workers=(os.cpu_count() or 1) + WAITING) as pool:
            for wave in waves(todo):
                unchanged = [] if force else [job for job in wave if self.record.is_done(job)]
                for _ in unchanged:  # what it was made from was made again, and is the same
                    display.found_unchanged()
                futures = {
                    pool.submit(self._run_job, job, display): job.name
                    for job in wave
                    if job not in unchanged
                }
                try:
                    for future in as_completed(futures):
                        if error := future.exception():
                            if not isinstance(error, Problem):
                                raise error
                            problems.setdefault(str(error), []).append(futures[future])
                except BaseException:  # also when someone stops us: no program may run on
                    shell.stopping.set()
                    pool.shutdown(wait=False, cancel_futures=True)
                    shell.stop_all()
                    raise
                if problems:
                    break
        display.close("failed" if problems else "passed")
        if problems:
            lines = (f"{', '.join(names)}: {problem}" for problem, names in problems.items())
            raise Problem("\n".join(lines))

    def _unfinished(self, jobs: list[Job]) -> list[Job]:
        """The jobs of a step that are not done, and those that wait for one of them: what it makes may be new."""
        found: dict[str, Job] = {}
        for job in jobs:
            if not found.keys().isdisjoint(job.after) or not self.record.is_done(job):
                found[job.name] = job
        return list(found.values())

    def _run_job(self, job: Job, display: StepDisplay) -> None:
        wheelhouse = self.record.wheelhouse
        work = wheelhouse / "work"
        work.mkdir(parents=True, exist_ok=True)
        log = wheelhouse / "logs" / f"{job.name.replace('/', '-')}.log"
        log.parent.mkdir(exist_ok=True)
        log.write_bytes(b"")
        self.record.check_ready(job, self.graph)
        inputs = self.record.resolve(job)
        began = time.monotonic()
        display.started(job.unit)
        verdict = "failed"
        folder = Path(tempfile.mkdtemp(prefix=f"{job.name.replace('/', '-')}-", dir=work))
        try:
            workspace = Workspace(
                inputs, folder, log, wheelhouse, self.project, wheelhouse, self.here
            )
            facts = self.module(job.step).run(job, workspace)
            self.record.passed(job, inputs, workspace.out, facts, time.monotonic() - began)
            verdict = str(facts.get("verdict", "ok"))
        except Problem as problem:
            self.record.failed(job, inputs, str(problem), time.monotonic() - began)
            raise
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            display.finished(job.unit, time.monotonic() - began, verdict)


def waves(jobs: list[Job]) -> Iterator[list[Job]]:
    """The jobs of a step in groups: each waits for none but those of earlier groups."""
    left = list(jobs)
    while left:
        names = {job.name for job in left}
        wave = [job for job in left if not names.intersection(job.after)]
        yield wave
        left = [job for job in left if job not in wave]


def _has_gpu() -> bool:
    try:
        return subprocess.run(["nvidia-smi", "-L"], capture_output=True).stdout.startswith(b"GPU")
    except FileNotFoundError:
        return False


@contextmanager
def only_run(wheelhouse: Path) -> Iterator[Record]:
    """One release at a time in a wheelhouse; its record, read when no other can write it."""
    wheelhouse.mkdir(parents=True, exist_ok=True)
    with (wheelhouse / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Problem(
                f"another release is running in {wheelhouse}; wait for it, or stop it"
            ) from None
        shutil.rmtree(wheelhouse / "work", ignore_errors=True)  # of a run that was killed
        yield Record(wheelhouse)

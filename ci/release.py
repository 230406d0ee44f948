"""Runs the steps of a release in order, each task once, and goes on where a stopped run was."""

import errno
import fcntl
import os
import platform
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

from ci import shell
from ci.engine import Engine
from ci.engine import ready as engine_ready
from ci.errors import Problem
from ci.matrix import Matrix
from ci.matrix import load as load_matrix
from ci.plan import WheelBuild
from ci.plan import make as make_plan
from ci.progress import Display, StepDisplay
from ci.project import Project, commit, wheelhouse
from ci.project import load as load_project
from ci.state import Result, State, Task


@dataclass
class Release:
    """All that a step may need to know."""

    display: Display
    strategy: str | None = None
    base: str = "auto"
    wanted: list[str] = field(default_factory=list)  # patterns of build names; empty: all
    index: str = "embedded"
    toolkit: str | None = None  # for universal wheels, in place of the matrix's choice
    cache: Path | None = None  # a compiler cache for trial builds; a release has none
    matrix: Matrix = field(default_factory=load_matrix)
    project: Project = field(default_factory=load_project)
    wheelhouse: Path = field(default_factory=wheelhouse)
    machine: str = field(default_factory=platform.machine)
    bases: dict[str, str] = field(default_factory=dict)  # the base image of each architecture

    def __post_init__(self) -> None:
        self.plan = make_plan(self.matrix, self.strategy, self.toolkit)
        if not self.builds:
            names = ", ".join(build.name for build in self.plan.builds[:3])
            raise Problem(f"no wheel of the plan is named {self.wanted}; names are like {names}")
        self.state = State(self.wheelhouse)
        self._engine: Engine | None = None
        self._engine_lock = threading.Lock()

    @property
    def builds(self) -> list[WheelBuild]:
        """The wheels of the plan that are wanted."""
        wanted = self.wanted or ["*"]
        return [b for b in self.plan.builds if any(fnmatch(b.name, w) for w in wanted)]

    def folder(self, *names: str) -> Path:
        """A folder below the wheelhouse, made if missing."""
        path = self.wheelhouse.joinpath(*names)
        path.mkdir(parents=True, exist_ok=True)
        return path

    def artifacts(self) -> dict[str, Path]:
        """The files to be published, by build name; each still what its task left."""
        files = {build.name: self.state.outputs(f"repair/{build.name}")[0] for build in self.builds}
        return {"sdist": self.state.outputs("build/sdist")[0], **files}

    def wheels(self) -> dict[str, Path]:
        return {name: path for name, path in self.artifacts().items() if name != "sdist"}

    def sha256(self, name: str) -> str:
        """The recorded hash of an artifact."""
        (value,) = self.state.tasks["build/sdist" if name == "sdist" else f"repair/{name}"][
            "outputs"
        ].values()
        return str(value)

    @property
    def engine(self) -> Engine:
        """The container engine, found or started when the first task needs it."""
        with self._engine_lock:
            self._engine = self._engine or engine_ready(self.wheelhouse, self.display.say)
            return self._engine

    def close(self) -> None:
        if self._engine is not None:
            self._engine.leave(self.display.say)


Step = Callable[[Release], list[Task]]
WAITING = 2  # tasks beyond the number of cores: some always wait for the network


def run(release: Release, steps: dict[str, Step], *, force: bool) -> None:
    """Runs `steps` in order; `force` repeats finished tasks. Raises where a step fails."""
    release.state.head |= {
        "project": release.project.name,
        "version": release.project.version,
        "commit": commit(),
        "strategy": release.plan.strategy,
    }
    with _only_run(release.wheelhouse), release.display.live():
        try:
            for name, step in steps.items():
                _run_step(release, name, step(release), force)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            free = shutil.disk_usage(release.wheelhouse).free >> 20
            raise Problem(
                f"the disk is full ({free} MiB left below {release.wheelhouse}); free some space, "
                "then run the same command again: it goes on from here"
            ) from None
        finally:
            shell.stop_all()
            release.close()


def _run_step(release: Release, name: str, tasks: list[Task], force: bool) -> None:
    todo = [task for task in tasks if force or not release.state.is_done(task)]
    display = release.display.step(name, len(tasks), len(tasks) - len(todo))
    problems: dict[str, list[str]] = {}  # what went wrong, and in which tasks
    with ThreadPoolExecutor(max_workers=(os.cpu_count() or 1) + WAITING) as pool:
        futures = {pool.submit(_run_task, release, task, display): task.name for task in todo}
        try:
            for future in as_completed(futures):
                if error := future.exception():
                    if not isinstance(error, Problem):
                        raise error
                    problems.setdefault(str(error), []).append(futures[future])
        except BaseException:  # also when someone stops us: no program may run on
            pool.shutdown(wait=False, cancel_futures=True)
            shell.stop_all()
            raise
    display.close("failed" if problems else "passed")
    if not release.wanted:
        release.state.forget_others(name, {task.name for task in tasks})
    if problems:
        lines = (f"{', '.join(names)}: {problem}" for problem, names in problems.items())
        raise Problem("\n".join(lines))


def _run_task(release: Release, task: Task, display: StepDisplay) -> None:
    log = release.folder("logs") / f"{task.name.replace('/', '-')}.log"
    log.write_bytes(b"")
    began = time.monotonic()
    unit = task.unit or task.step
    display.started(unit)
    verdict = "failed"
    try:
        result = task.run(log) or Result()
        release.state.passed(task, result, time.monotonic() - began)
        verdict = str(result.facts.get("verdict", "ok"))
    except Problem as problem:
        release.state.failed(task, str(problem), time.monotonic() - began)
        raise
    finally:
        display.finished(unit, time.monotonic() - began, verdict)


@contextmanager
def _only_run(wheelhouse: Path) -> Iterator[None]:
    """One release at a time in a wheelhouse."""
    wheelhouse.mkdir(parents=True, exist_ok=True)
    with (wheelhouse / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Problem(
                f"another release is running in {wheelhouse}; wait for it, or stop it"
            ) from None
        yield

"""Runs jobs on this machine, in threads, one step after the other."""

import os
import platform
import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import ClassVar

from wheelyard.core import engine as containers
from wheelyard.core import shell
from wheelyard.core.engine import Engine
from wheelyard.core.job import Job
from wheelyard.core.progress import Display
from wheelyard.core.record import Facts
from wheelyard.core.workspace import Workspace
from wheelyard.run.runner import Ran

WAITING = 2  # jobs beyond the number of cores: some always wait for the network

StepModule = Callable[[str], ModuleType]


def slots() -> int:
    """Returns how many jobs a machine runs side by side."""
    return (os.cpu_count() or 1) + WAITING


@dataclass
class Here:
    """This machine: its container engine, found or started when the first job needs it."""

    folder: Path
    display: Display
    _engine: Engine | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def engine(self) -> Engine:
        with self._lock:
            self._engine = self._engine or containers.ready(self.folder, self.say)
            return self._engine

    def say(self, text: str) -> None:
        self.display.say(text)

    def close(self) -> None:
        """Leaves the engine, even one that no job of this run needed but that a killed run had started."""
        if self._engine is None and containers.is_left_over():
            self.engine()
        if self._engine is not None:
            self._engine.leave(self.say)


@dataclass(frozen=True)
class Local:
    """This machine as the place of a run, for the project whose files are below `project`."""

    project: Path
    module: StepModule  # returns the module of a step, by its name
    here: Here
    step_by_step: ClassVar[bool] = True

    def kind(self, job: Job) -> Hashable:  # noqa: ARG002
        return "here"

    def room(self, kind: Hashable) -> int:  # noqa: ARG002
        return slots()

    def lacks(self, job: Job) -> str | None:
        if job.needs.arch not in (None, platform.machine()):
            return f"needs a machine with {job.needs.arch}, and this is {platform.machine()}"
        return None

    def run(self, job: Job, inputs: Facts, folder: Path, log: Path) -> Ran:
        release_folder, began = self.here.folder, time.time()
        workspace = Workspace(
            inputs, folder, log, release_folder, self.project, release_folder, self.here
        )
        workspace.expect(job.outputs)
        return Ran(self.module(job.step).run(job, workspace), platform.node(), began)

    def stop(self) -> None:
        shell.stopping.set()
        shell.stop_all()

    def close(self) -> None:
        shell.stop_all()
        shell.stopping.clear()
        self.here.close()

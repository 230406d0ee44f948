"""What a job sees while it runs: its inputs as files, a folder for what it makes, a log, containers. Nothing else.

A runner makes one for each job. The files that other jobs made and those of the project lie in folders of their own
and are checked against their digests when they are handed out, so a job works on exactly what its inputs say.
"""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from wheelyard.core.digest import sha256
from wheelyard.core.engine import Engine
from wheelyard.problem import Problem


class Machine(Protocol):
    """What a runner offers to all its jobs."""

    def engine(self) -> Engine: ...

    def say(self, text: str) -> None: ...


@dataclass(frozen=True)
class Workspace:
    inputs: Mapping[str, Any]  # resolved
    folder: Path  # for this job alone; removed when it is over
    log: Path
    made_by_others: Path  # below it lie the files of `Made` inputs
    project: Path  # below it lie the files of `Source` inputs
    lasting: Path  # folders that outlive the job
    machine: Machine

    @property
    def out(self) -> Path:
        """Where a job leaves what it made, by its path below the wheelhouse."""
        return self.scratch("out")

    def scratch(self, name: str) -> Path:
        path = self.folder / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def kept(self, name: str) -> Path:
        """A folder that the next run finds again: downloads, the embedded index."""
        path = self.lasting / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def files(self, name: str) -> list[Path]:
        """The files of an input that other jobs made."""
        return [self._checked(self.made_by_others / p, d) for p, d in self.inputs[name].items()]

    def file(self, name: str) -> Path:
        (file,) = self.files(name)
        return file

    def sources(self, name: str) -> Path:
        """A copy of the project's files of an input, as a folder of the same shape."""
        folder = self.scratch(f"sources-{name}")
        for relative, recorded in self.inputs[name].items():
            target = folder / relative
            target.parent.mkdir(parents=True, exist_ok=True)
            source = self.project / relative
            if source.is_symlink():
                target.symlink_to(source.readlink())
            else:
                shutil.copy2(self._checked(source, recorded), target)
        return folder

    @property
    def engine(self) -> Engine:
        return self.machine.engine()

    @property
    def say(self) -> Callable[[str], None]:
        return self.machine.say

    @staticmethod
    def _checked(path: Path, recorded: str) -> Path:
        if sha256(path) != recorded:
            raise Problem(f"{path} changed while the release ran; run the same command again")
        return path

"""Provides a running job with its inputs as files, a folder for its results, a log and containers, and nothing else.

A runner makes one for each job. The files that other jobs made and those of the project are copied into the job's own
folder, and it is the copies that are compared with their digests, so a job works on exactly what its inputs say,
whatever happens to the originals; and a container that is shown them sees no other file of the release.
"""

import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from wheelyard.core.digest import EXECUTABLE, LINK, sha256
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
        """The folder in which a job leaves what it made, each file at its path below the release folder."""
        return self.scratch("out")

    def expect(self, outputs: Iterable[str]) -> None:
        """Makes the folders of what a job will leave: those that a container makes belong to root."""
        for path in outputs:
            (self.out / path.removeprefix("?")).parent.mkdir(parents=True, exist_ok=True)

    def scratch(self, name: str) -> Path:
        path = self.folder / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def kept(self, name: str) -> Path:
        """A folder that the next run finds again: downloads, the embedded index."""
        path = self.lasting / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def recorded(self, name: str) -> dict[Path, str]:
        """Copies of an input's files that other jobs made, with their recorded digests."""
        folder = self.scratch(f"made-{name}")
        return {
            self._copied(self.made_by_others / path, folder / path, digest): digest
            for path, digest in self.inputs[name].items()
        }

    def files(self, name: str) -> list[Path]:
        return list(self.recorded(name))

    def file(self, name: str) -> Path:
        (file,) = self.files(name)
        return file

    def sources(self, name: str) -> Path:
        """A copy of the project's files of an input, as a folder of the same shape."""
        folder = self.scratch(f"sources-{name}")
        for relative, recorded in self.inputs[name].items():
            target = folder / relative
            target.parent.mkdir(parents=True, exist_ok=True)
            if recorded.startswith(LINK):
                target.symlink_to(recorded.removeprefix(LINK))
            else:
                self._copied(self.project / relative, target, recorded)
        return folder

    @property
    def engine(self) -> Engine:
        return self.machine.engine()

    @property
    def say(self) -> Callable[[str], None]:
        return self.machine.say

    @staticmethod
    def _copied(source: Path, target: Path, recorded: str) -> Path:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        shutil.copyfile(source, target)
        if sha256(target) != recorded.removesuffix(EXECUTABLE):
            raise Problem(f"{source} changed while the release ran; run the same command again")
        target.chmod(0o755 if recorded.endswith(EXECUTABLE) else 0o644)
        return target

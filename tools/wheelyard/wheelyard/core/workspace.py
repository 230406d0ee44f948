"""Provides a running job with its inputs as files, a folder for its results, a log and containers, and nothing else.

A runner makes one for each job. Files of other jobs and of the project are copied into the job's own folder, and the
copies are compared with their digests. So a job works on exactly what its inputs say, whatever happens to the
originals, and a container that gets the copies sees no other file of the release.
"""

import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from wheelyard.core.digest import EXECUTABLE, LINK, sha256
from wheelyard.core.engine import Engine
from wheelyard.problem import Problem


class Machine(Protocol):
    """The services that a runner offers to all its jobs."""

    def engine(self) -> Engine: ...

    def say(self, text: str) -> None: ...


@dataclass(frozen=True)
class Workspace:
    inputs: Mapping[str, Any]  # resolved
    folder: Path  # for this job alone; removed when it ends
    log: Path
    made_by_others: Path  # parent folder of the files of `Made` inputs
    project: Path  # parent folder of the files of `Source` inputs
    lasting: Path  # folders that outlive the job
    machine: Machine

    @property
    def out(self) -> Path:
        """The folder for a job's results, each at its path below the release folder."""
        return self.scratch("out")

    def expect(self, outputs: Iterable[str]) -> None:
        """Makes the folders for a job's outputs: a container would make them as root's."""
        for path in outputs:
            (self.out / path.removeprefix("?")).parent.mkdir(parents=True, exist_ok=True)

    def scratch(self, name: str) -> Path:
        path = self.folder / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def kept(self, name: str) -> Path:
        """Returns a folder that lasts until the next run: downloads, the embedded index."""
        path = self.lasting / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def recorded(self, name: str) -> dict[Path, str]:
        """Returns copies of the files that an input has from other jobs, with their recorded digests."""
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
        """Returns a folder with copies of the project's files in an input, at the same paths."""
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

    @staticmethod
    def _copied(source: Path, target: Path, recorded: str) -> Path:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        shutil.copyfile(source, target)
        if sha256(target) != recorded.removesuffix(EXECUTABLE):
            raise Problem(f"{source} changed while the release ran; run the same command again")
        target.chmod(0o755 if recorded.endswith(EXECUTABLE) else 0o644)
        return target

"""What a worker is told of a job, and the files that it may ask for."""

import subprocess
import threading
from dataclasses import dataclass, field
from pathlib import Path

from wheelyard.core.digest import EXECUTABLE, LINK, sha256
from wheelyard.core.job import Job, Made, Source
from wheelyard.core.record import Facts
from wheelyard.problem import Problem
from wheelyard.run.cluster.store import pack

HISTORY = "git"  # the input of a job that sees what git says


@dataclass
class Orders:
    """The orders of the jobs of one release."""

    project: Path
    folder: Path
    _history: str | None = None
    _turn: threading.Lock = field(default_factory=threading.Lock)

    def of(self, job: Job, inputs: Facts) -> tuple[Facts, dict[str, Path]]:
        """What a worker is told, and the files that it may ask for, by their digests."""
        made: dict[str, str] = {}
        project: dict[str, str] = {}
        files: dict[str, Path] = {}
        for name, value in job.inputs.items():
            if isinstance(value, Made):
                made |= inputs[name]
                files |= {d: self.folder / path for path, d in inputs[name].items()}
            elif isinstance(value, Source):
                project |= inputs[name]
                for path, recorded in inputs[name].items():
                    if not recorded.startswith(LINK):
                        files[recorded.removesuffix(EXECUTABLE)] = self.project / path
        history = None
        if HISTORY in job.inputs and (self.project / ".git").is_dir():
            history = self._bundle()
            files[history] = self._bundle_file
        order = {
            "job": job.as_json(), "inputs": inputs, "made": made, "project": project,
            "history": history,
            "small": pack({digest: files[digest] for digest in made.values()}),
        }  # fmt: skip
        return order, files

    @property
    def _bundle_file(self) -> Path:
        return self.folder / "work/history.bundle"

    def _bundle(self) -> str:
        """The commit with its history and tags as one file; its digest."""
        with self._turn:
            if self._history is None:
                self._bundle_file.parent.mkdir(parents=True, exist_ok=True)
                words = [
                    "git",
                    "bundle",
                    "create",
                    "--quiet",
                    str(self._bundle_file),
                    "HEAD",
                    "--tags",
                ]
                done = subprocess.run(words, cwd=self.project, capture_output=True, text=True)
                if done.returncode != 0:
                    raise Problem(f"git cannot bundle the sources: {done.stderr.strip()}")
                self._history = sha256(self._bundle_file)
            return self._history

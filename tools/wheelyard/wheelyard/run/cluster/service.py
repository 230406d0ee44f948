"""Runs one job on a worker, from an order: asks for the files that the worker lacks, runs the step in a folder of its
own, and keeps what it made.

Orders and answers are JSON. A job ends in one of three ways: it `passed`; it `failed` by its own fault, as it would
anywhere; or there was a `fault` of this machine, and another one may do better.
"""

import errno
import shutil
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wheelyard.core import git, guard
from wheelyard.core.digest import EXECUTABLE, LINK, sha256
from wheelyard.core.job import Job, Made, Needs, Source
from wheelyard.core.record import Facts, acceptable
from wheelyard.core.workspace import Workspace
from wheelyard.problem import Problem
from wheelyard.run.cluster.store import Store, trim
from wheelyard.run.local import Here, StepModule

PATIENCE_SECONDS = 120  # how long a job waits for its next file
LOOK_SECONDS = 0.1  # between looks whether a file has arrived
FULL = 64 << 20  # a disk with fewer bytes left counts as full
NO_SPACE = "No space left on device"
HISTORY = "git"  # the input of jobs that get git's history

Order = dict[str, Any]
Outcome = dict[str, Any]
Tell = Callable[[Order], None]


class Fault(Exception):
    """A fault of this machine, not of the job."""


@dataclass
class Orders:
    """The orders of the jobs of one release."""

    project: Path
    folder: Path
    _history: str | None = None
    _turn: threading.Lock = field(default_factory=threading.Lock)

    def of(self, job: Job, inputs: Facts) -> tuple[Order, dict[str, Path]]:
        """Returns the order for a worker, and the files that it may ask for, by their digests."""
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
        order = {"step": job.step, "unit": job.unit, "outputs": job.outputs, "inputs": inputs}
        return order | {"made": made, "project": project, "history": history}, files

    @property
    def _bundle_file(self) -> Path:
        return self.folder / "work/history.bundle"

    def _bundle(self) -> str:
        """Writes the commit with its history and tags into one file; returns its digest."""
        with self._turn:
            if self._history is None:
                self._bundle_file.parent.mkdir(parents=True, exist_ok=True)
                words = ["bundle", "create", "--quiet", str(self._bundle_file), "HEAD", "--tags"]
                git.call(self.project, *words)
                self._history = sha256(self._bundle_file)
            return self._history


class Service:
    """Everything that a worker has besides Dask: folders, files, a container engine."""

    def __init__(self, here: Here, module: StepModule, limit: int) -> None:
        """Makes the folders. `limit` are the bytes of each of the two caches: files, downloads."""
        self.here, self.module, self.limit, self.folder = here, module, limit, here.folder
        self.store = Store(self.folder / "files")
        guard.end_leftovers(self.folder / "work")
        shutil.rmtree(self.folder / "work", ignore_errors=True)  # left by a worker that was killed
        (self.folder / "work").mkdir()

    def perform(self, order: Order, tell: Tell) -> Outcome:
        """Does a job; `tell` sends messages to whoever ordered it."""
        tell({"kind": "started"})
        step, unit, outputs = order["step"], order["unit"], tuple(order["outputs"])
        job = Job(step, unit, Needs(), order["inputs"], outputs)
        folder = Path(tempfile.mkdtemp(prefix=job.name.replace("/", "-"), dir=self.folder / "work"))
        log = folder / "log"
        log.touch()
        try:
            outcome = self._run(job, order, folder, log, tell)
        except Fault as fault:
            outcome = {"kind": "fault", "error": str(fault)}
        except Problem as problem:
            outcome = {"kind": "failed", "error": str(problem)}
            if NO_SPACE in str(problem) or shutil.disk_usage(self.folder).free < FULL:
                what = str(problem).splitlines()[0]
                outcome = {"kind": "fault", "error": f"its disk is full: {what}"}
        except OSError as error:
            what = "its disk is full" if error.errno == errno.ENOSPC else str(error)
            outcome = {"kind": "fault", "error": f"{what} (below {self.folder})"}
        except Exception:
            outcome = {"kind": "failed", "error": traceback.format_exc()}
        try:
            outcome |= {"log_path": str(log), "log": self.store.take(log)}
            shutil.rmtree(folder, ignore_errors=True)
            for place in (self.store.folder, self.folder / "kept"):
                trim(place, self.limit)
        except OSError as error:  # no room even for the log
            shutil.rmtree(folder, ignore_errors=True)
            why = f"{error} (below {self.folder})"
            outcome = {"kind": "fault", "error": why, "log": ["", 0]}
        return outcome

    def _run(self, job: Job, order: Order, folder: Path, log: Path, tell: Tell) -> Outcome:
        project, made = folder / "project", folder / "made"
        for place in (project, made, folder / "job"):
            place.mkdir()
        targets = {made / path: digest for path, digest in order["made"].items()}
        for path, recorded in order["project"].items():
            if recorded.startswith(LINK):
                (project / path).parent.mkdir(parents=True, exist_ok=True)
                (project / path).symlink_to(recorded.removeprefix(LINK))
            else:
                targets[project / path] = recorded.removesuffix(EXECUTABLE)
        if order["history"]:
            targets[folder / "history"] = order["history"]
        self._bring(targets, tell)
        for path, recorded in order["project"].items():
            if recorded.endswith(EXECUTABLE):
                (project / path).chmod(0o755)
        if order["history"]:
            unpack_history(folder / "history", project)
        kept = self.folder / "kept"
        workspace = Workspace(order["inputs"], folder / "job", log, made, project, kept, self.here)
        workspace.expect(job.outputs)
        verdict = self.module(job.step).run(job, workspace)
        found = acceptable(job, workspace.out)
        outputs = {path: self.store.take(workspace.out / path) for path in found}
        return {"kind": "passed", "verdict": verdict, "outputs": outputs}

    def _bring(self, targets: dict[Path, str], tell: Tell) -> None:
        """Puts the files of a job where it looks for them, and asks for those that are missing here."""
        left = dict(targets)
        while True:
            left = {t: digest for t, digest in left.items() if not self.store.copy(digest, t)}
            if not left:
                return
            missing = self.store.missing(left.values())
            tell({"kind": "wants", "files": missing})
            asked = time.monotonic()
            while missing := self.store.missing(missing):
                time.sleep(LOOK_SECONDS)
                if time.monotonic() - max(asked, self.store.last_piece) > PATIENCE_SECONDS:
                    raise Fault(f"it got no file for {PATIENCE_SECONDS} seconds")


def unpack_history(bundle: Path, project: Path) -> None:
    """Makes a folder the repository that a bundle was made from, with the same HEAD and tags: versions may come from
    them."""
    try:
        git.call(project, "init", "--quiet")
        git.call(project, "fetch", "--quiet", "--tags", str(bundle), "HEAD")
        git.call(project, "update-ref", "--no-deref", "HEAD", "FETCH_HEAD")
        git.call(project, "reset", "--quiet")
    except Problem as problem:
        raise Fault(str(problem)) from None

"""What a job finds: other jobs in the record, as if they had run, and a workspace, as a runner makes it."""

import shutil
import tempfile
from pathlib import Path
from typing import Any

from wheelyard.core.digest import sha256
from wheelyard.core.engine import Engine
from wheelyard.core.job import Job, Needs
from wheelyard.core.record import Record
from wheelyard.core.workspace import Workspace


def job(name: str, inputs: dict[str, Any] | None = None, outputs: tuple[str, ...] = ()) -> Job:
    step, _, unit = name.partition("/")
    return Job(step, unit, Needs(), inputs or {}, outputs)


def passed(record: Record, name: str, *files: Path, inputs: dict[str, Any] | None = None) -> None:
    """Records that the job passed and left copies of these files at the top of the release folder."""
    made = job(name, inputs, tuple(file.name for file in files))
    with tempfile.TemporaryDirectory(dir=record.folder.parent) as folder:
        for file in files:
            shutil.copy(file, folder)
        record.passed(made, record.resolve(made), Path(folder), {}, 2.0)


def failed(record: Record, name: str, error: str) -> None:
    record.failed(job(name), {}, error, 3.0)


class NoEngine:
    """A machine without containers."""

    def engine(self) -> Engine:
        raise AssertionError("no container is needed here")

    def say(self, text: str) -> None:
        print(text)


def workspace(folder: Path, made: dict[str, list[Path]], **inputs: Any) -> Workspace:
    """One whose inputs are files that other jobs made, and values."""
    files = {
        name: {str(f.relative_to(folder)): sha256(f) for f in some} for name, some in made.items()
    }
    own = folder / "job"
    own.mkdir(parents=True, exist_ok=True)
    return Workspace({**files, **inputs}, own, own / "log", folder, folder, folder, NoEngine())

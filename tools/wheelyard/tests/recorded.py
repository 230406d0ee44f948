"""Puts jobs into a record as if they had run: for tests of what comes after them."""

import shutil
import tempfile
from pathlib import Path
from typing import Any

from wheelyard.core.job import Job, Needs
from wheelyard.core.record import Record


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

"""Tests what stays on disk in every case, and what does not."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def flush(path: Path) -> None:
    """Has the disk keep a file, or all in a folder, also if the power goes."""
    for below in path.iterdir() if path.is_dir() else ():
        with suppress(FileNotFoundError):  # a database's own, just removed
            flush(below)
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def temporary_files_in(work: Path) -> Iterator[None]:
    """Ours and those of all programs: what a kill leaves of them, the next run removes with the rest of the work."""
    folder = work / "tmp"
    folder.mkdir(parents=True, exist_ok=True)
    before = os.environ.get("TMPDIR")
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = None
        del os.environ["TMPDIR"]
        if before is not None:
            os.environ["TMPDIR"] = before
        shutil.rmtree(folder, ignore_errors=True)

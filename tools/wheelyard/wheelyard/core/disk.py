"""Flushes files to disk, and keeps temporary files where the next run removes them."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def flush(path: Path) -> None:
    """Writes a file, or everything in a folder, through to the disk, so that it survives a power failure."""
    for below in path.iterdir() if path.is_dir() else ():
        with suppress(FileNotFoundError):  # such as a database's temporary file, just removed
            flush(below)
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def temporary_files_in(work: Path) -> Iterator[None]:
    """Puts the temporary files of this and all other programs below `work`. If a run is killed, the next one removes
    them with the rest."""
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

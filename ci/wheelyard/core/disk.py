"""What must be on the disk before something says that it is there."""

import os
from contextlib import suppress
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

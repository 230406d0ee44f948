"""Locks a folder, or some kind of work on this machine, for one process at a time."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wheelyard.problem import Problem


@contextmanager
def only_one(folder: Path, otherwise: str) -> Iterator[None]:
    """Makes the folder and locks it; raises a Problem with the text `otherwise` if another process has locked it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / ".lock").open("w")
    except OSError as error:
        raise Problem(
            f"{folder} cannot be written ({error.strerror}); make it writable, or name another folder: "
            "RELEASE_FOLDER=FOLDER"
        ) from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Problem(otherwise) from None
        except OSError as error:
            raise Problem(
                f"the file system of {folder} has no locks ({error.strerror}), which keep two runs apart; "
                "name a folder on another one: RELEASE_FOLDER=FOLDER"
            ) from None
        yield


@contextmanager
def turn(path: Path) -> Iterator[None]:
    """Waits until no other process or thread holds the lock on `path`, a folder or a file, and takes it. A missing file
    is made."""
    held = os.open(path, os.O_RDONLY | (0 if path.is_dir() else os.O_CREAT), 0o644)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)

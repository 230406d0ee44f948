"""Stores files by sha256 in one folder: the inputs and results of jobs. The oldest are deleted when it is full."""

import os
import re
import shutil
import time
from collections.abc import Iterable
from pathlib import Path

from wheelyard.core.digest import sha256

CHUNK = 8 << 20  # most bytes of a file in one message
KEPT_SECONDS = 600  # a more recent file may be on its way to a job, or to the release's machine


class Wrong(Exception):
    """A file that does not match its digest."""


class Store:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.last_piece = 0.0  # time of the last arrival, by the monotonic clock
        shutil.rmtree(folder / "parts", ignore_errors=True)
        (folder / "parts").mkdir(parents=True)

    def path(self, digest: str) -> Path:
        if not re.fullmatch(r"[0-9a-f]{64}", digest):
            raise Wrong(f"{digest!r} is not a sha256")
        return self.folder / digest

    def missing(self, digests: Iterable[str]) -> list[str]:
        """Returns the digests of files that are not here, and protects the others from deletion for a while."""
        absent = []
        for digest in dict.fromkeys(digests):
            try:
                os.utime(self.path(digest))
            except FileNotFoundError:
                absent.append(digest)
        return absent

    def receive(self, digest: str, offset: int, chunk: bytes, is_last: bool) -> None:
        """Writes a piece of a file. The last piece completes it, if its digest is right."""
        target = self.path(digest)
        part = self.folder / "parts" / digest
        with part.open("r+b" if offset else "wb") as stream:
            stream.seek(offset)
            stream.write(chunk)
        self.last_piece = time.monotonic()
        if not is_last:
            return
        if sha256(part) != digest:
            part.unlink()
            raise Wrong(f"the file {digest[:16]} was altered on its way")
        part.replace(target)

    def read(self, digest: str, offset: int) -> bytes:
        with self.path(digest).open("rb") as stream:
            stream.seek(offset)
            return stream.read(CHUNK)

    def take(self, file: Path) -> tuple[str, int]:
        """Moves a file into the store; returns its sha256 and size."""
        digest, size = sha256(file), file.stat().st_size
        target = self.path(digest)
        shutil.move(file, target)
        os.utime(target)
        return digest, size

    def copy(self, digest: str, target: Path) -> bool:
        """Copies a file to where a job looks for it; returns whether it was here. A damaged file is deleted and counts
        as missing."""
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            shutil.copyfile(self.path(digest), target)
        except FileNotFoundError:
            return False
        if sha256(target) != digest:
            self.path(digest).unlink(missing_ok=True)
            return False
        return True


def trim(folder: Path, limit: int) -> None:
    """Deletes the files that were not used for longest, until the rest fits."""
    files = [file for file in folder.rglob("*") if file.is_file() and not file.is_symlink()]
    found = [(file.stat().st_mtime, file.stat().st_size, file) for file in files]
    total = sum(size for _, size, _ in found)
    for used, size, file in sorted(found):
        if total <= limit or time.time() - used < KEPT_SECONDS:
            break
        file.unlink(missing_ok=True)
        total -= size

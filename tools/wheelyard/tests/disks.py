"""Provides disks for tests: one with little room, and one whose power can fail."""

import fcntl
import os
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

# ext4's EXT4_IOC_SHUTDOWN: from now on nothing reaches the disk, not even data that waits in memory for it.
SHUT_DOWN, WITHOUT_FLUSHING = 0x8004587D, struct.pack("I", 2)


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """Makes `folder` a disk of that size; the test is skipped if nothing can be mounted."""
    folder.mkdir()
    _mount("-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder)
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


class Disk:
    """A file system at `folder`, which is made. When its power is lost, it keeps what had reached the disk by then."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._starts = folder, 0
        folder.mkdir()
        with self._image().open("wb") as image:
            image.truncate(8 << 30)  # sparse
        subprocess.run(["mkfs.ext4", "-q", self._image()], check=True)
        _mount("-o", "loop", self._image(), folder)

    def _image(self) -> Path:
        return self.folder.with_name(f"{self.folder.name}.{self._starts}.disk")

    def lose_power(self) -> None:
        root = os.open(self.folder, os.O_RDONLY)
        fcntl.ioctl(root, SHUT_DOWN, WITHOUT_FLUSHING)
        os.close(root)

    def start_again(self) -> None:
        """Mounts a copy of the disk, as the one without power may still be open somewhere."""
        before = self._image()
        self._starts += 1
        subprocess.run(["cp", "--sparse=always", before, self._image()], check=True)
        self._leave(before)
        _mount("-o", "loop", self._image(), self.folder)

    def close(self) -> None:
        self._leave(self._image())
        self.folder.rmdir()

    def _leave(self, image: Path) -> None:
        subprocess.run(["umount", "--lazy", self.folder], check=True)
        image.unlink()


def _mount(*words: object) -> None:
    # In most containers even root cannot mount.
    if subprocess.run(["mount", *map(str, words)]).returncode != 0:
        pytest.skip("mounts a file system, which needs privileges")

"""A file system with little room, for tests of full disks."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """`folder`, made and with so much room; a test is skipped where nothing can be mounted."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder]
    if subprocess.run(mount).returncode != 0:  # in most containers root cannot either
        pytest.skip("mounts a small file system, which needs privileges")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)

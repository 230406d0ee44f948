"""Downloads wheels of any platform from PyPI through pip."""

import hashlib
import subprocess
import sys
from pathlib import Path


def platform_options(arch: str) -> list[str]:
    """pip takes the tags of another platform literally, so every glibc that has a tag is named."""
    old = [f"manylinux{year}_{arch}" for year in (1, 2010, 2014)]
    return [
        f"--platform={tag}" for tag in [*old, *(f"manylinux_2_{n}_{arch}" for n in range(5, 42))]
    ]


def download(requirement: str, folder: Path, options: list[str]) -> None:
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    # pip's cache would keep a second copy of what is gigabytes.
    fixed = ["--no-cache-dir", "--no-deps", "--only-binary=:all:", f"--dest={folder}"]
    subprocess.run([*pip, *fixed, *options, requirement], check=True)


def sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()

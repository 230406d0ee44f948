"""Downloads wheels of any platform, and source distributions, from PyPI."""

import contextlib
import functools
import hashlib
import html
import json
import os
import re
import subprocess
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

OLD_NAMES = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}


def platforms(glibc: int, arch: str) -> list[str]:
    """Returns the platform tags of a system with glibc 2.N, newest first."""
    found = [f"linux_{arch}"]
    for minor in range(glibc, 4, -1):
        found.append(f"manylinux_2_{minor}_{arch}")
        if minor in OLD_NAMES:
            found.append(f"{OLD_NAMES[minor]}_{arch}")
    return found


def wheel(requirement: str, folder: Path, arch: str, *options: str, pattern: str = "*.whl") -> Path:
    """Returns a wheel for a system, which is downloaded if the folder has none."""
    if not list(folder.glob(pattern)):
        # pip takes the tags of another platform literally.
        tags = [f"--platform={tag}" for tag in platforms(41, arch)]
        download(requirement, folder, [*options, *tags])
    return next(folder.glob(pattern))


def download(requirement: str, folder: Path, options: list[str]) -> None:
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    # pip's cache would keep a second copy of gigabytes.
    fixed = ["--no-cache-dir", "--no-deps", "--only-binary=:all:", f"--dest={folder}"]
    subprocess.run([*pip, *fixed, *options, requirement], check=True)


def sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@functools.cache
def index() -> str:
    """Returns the address of pip's index."""
    show = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    set_up = subprocess.run(show, capture_output=True, text=True).stdout.strip()
    return (os.environ.get("PIP_INDEX_URL") or set_up or "https://pypi.org/simple").rstrip("/")


def index_page(name: str) -> str:
    """Returns the address of a project's page on pip's index."""
    return f"{index()}/{name}/"


def files_of(name: str) -> list[dict[str, Any]]:
    """Returns all files of a project as its page in JSON describes them: unlike the index's own page,
    that one has the sizes, even where a mirror shows only HTML. Nothing for an unknown project."""
    page = index_page(name).replace("/simple/", "/pypi/") + "json"
    try:
        with urllib.request.urlopen(page, timeout=60) as answer:
            releases = json.load(answer)["releases"]
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return []
        raise
    found = [file for files in releases.values() for file in files]
    return [file | {"url": urllib.parse.urljoin(page, file["url"])} for file in found]


def sdist(name: str, release: str, digest: str, folder: Path) -> Path:
    """Returns the folder with a source distribution's files. pip would run its build to download
    it."""
    stem = f"{name.replace('-', '_')}-{release}"
    if not (folder / stem).exists():
        page = index_page(name)
        with urllib.request.urlopen(page) as answer:
            links = re.findall(rf'href="([^"#]*{re.escape(stem)}\.tar\.gz)', answer.read().decode())
        with urllib.request.urlopen(urllib.parse.urljoin(page, html.unescape(links[0]))) as answer:
            data = answer.read()
        if hashlib.sha256(data).hexdigest() != digest:
            raise ValueError(f"{stem}.tar.gz is not the file of the lock")
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as unpacked:
            # With tar: Debian 12's Python has no filters for extractall, and later ones require
            # one.
            subprocess.run(["tar", "-xzf", "-", "-C", unpacked], input=data, check=True)
            with contextlib.suppress(OSError):  # another process was faster
                (Path(unpacked) / stem).rename(folder / stem)
    return folder / stem

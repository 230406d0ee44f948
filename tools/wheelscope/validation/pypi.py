"""Downloads wheels of any platform, and source distributions, from PyPI."""

import contextlib
import hashlib
import html
import os
import re
import subprocess
import sys
import tempfile
import urllib.parse
import urllib.request
from pathlib import Path


def platform_options(arch: str) -> list[str]:
    """Names every glibc that has a tag, because pip takes the tags of another platform
    literally."""
    old = [f"manylinux{year}_{arch}" for year in (1, 2010, 2014)]
    return [
        f"--platform={tag}" for tag in [*old, *(f"manylinux_2_{n}_{arch}" for n in range(5, 42))]
    ]


def download(requirement: str, folder: Path, options: list[str]) -> None:
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    # pip's cache would keep a second copy of gigabytes.
    fixed = ["--no-cache-dir", "--no-deps", "--only-binary=:all:", f"--dest={folder}"]
    subprocess.run([*pip, *fixed, *options, requirement], check=True)


def sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def index_page(name: str) -> str:
    """Returns the address of a project's page on pip's index."""
    show = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    set_up = subprocess.run(show, capture_output=True, text=True).stdout.strip()
    index = os.environ.get("PIP_INDEX_URL") or set_up or "https://pypi.org/simple"
    return f"{index.rstrip('/')}/{name}/"


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

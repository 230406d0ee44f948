"""Facts about the project itself: pyproject.toml, git, and where outputs go."""

import hashlib
import os
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Project:
    name: str
    version: str


def load() -> Project:
    table = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return Project(table["name"], table["version"])


def wheelhouse() -> Path:
    """Where a release is made; WHEELHOUSE moves it."""
    return Path(os.environ.get("WHEELHOUSE") or ROOT / "wheelhouse").resolve()


def commit() -> str:
    """The commit that the tree stands on; a trailing + marks changes since; empty outside git."""
    head = _git("rev-parse", "HEAD")
    return head + "+" if head and _git("status", "--porcelain") else head


def version_tag() -> str:
    """The version tag on HEAD, or an empty string."""
    return _git("tag", "--points-at", "HEAD", "--list", "v*").split("\n")[0]


def _git(*words: str) -> str:
    try:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()

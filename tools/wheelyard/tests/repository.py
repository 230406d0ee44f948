"""Where wheelyard's project lies, and the repository around it, whose matrix and workflows some tests read; other
repositories, to be made, and to call wheelyard in; and which tests make real releases in containers."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[1]
ROOT = TOOL.parents[1]


def write(folder: Path, texts: Mapping[str, str]) -> Path:
    """Files with these texts."""
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def git(folder: Path, *words: str) -> str:
    """What git prints, as somebody's."""
    who = ["-c", "user.name=test", "-c", "user.email=test@localhost"]
    command = ["git", *who, *words]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def committed(folder: Path) -> Path:
    """All files of a folder, as the first commit of a repository."""
    git(folder, "init")
    git(folder, "add", "--all")
    git(folder, "commit", "--message", "first")
    return folder


def wheelyard(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A command of wheelyard in a project; all releases are made there."""
    command = [sys.executable, "-m", "wheelyard", *words]
    told = {**outer_environment(), **environment}
    return subprocess.run(command, cwd=folder, env=told, capture_output=True, text=True)


def outer_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "RELEASE_FOLDER"}


def real_release(*, large: bool = False) -> pytest.MarkDecorator:
    """For `pytestmark`; a large one needs tens of gigabytes of images, or more minutes than all others together.

    RELEASE_TESTS is set by the targets of the Makefile that run such tests.
    """
    wanted = os.environ.get("RELEASE_TESTS", "")
    reason = "minutes of real container builds; `make test-release` runs them"
    if large:
        reason = "tens of gigabytes of images, or many minutes; `make test-release ALL=1` runs them"
    is_off = wanted != "all" if large else not wanted
    return pytest.mark.skipif(is_off, reason=reason)

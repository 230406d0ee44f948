"""Locates wheelyard's project and the repository around it, whose matrix and workflows some tests read; makes other
repositories, and programs that stand in for others; marks the tests that make real releases in containers."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

TOOL = Path(__file__).resolve().parents[1]
ROOT = TOOL.parents[1]


def write(folder: Path, texts: Mapping[str, str]) -> Path:
    """Writes files with these texts; returns the folder."""
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def program(folder: Path, name: str, line: str) -> Path:
    """Makes a shell script that stands in for a program."""
    file = folder / name
    file.write_text(f"#!/bin/sh\n{line}\n")
    file.chmod(0o755)
    return file


def wait_until(holds: Callable[[], object], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"it does not hold after {seconds} seconds"
        time.sleep(0.05)


@contextmanager
def started(command: Sequence[object], **settings: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Runs a program beside a test, and not longer: one that a failing test leaves is a warning in another test."""
    running = subprocess.Popen([str(word) for word in command], **settings)
    try:
        yield running
    finally:
        running.kill()
        running.wait()


def sleeping(seconds: str) -> int:
    """Returns how many processes sleep for so many seconds. Other suites on this machine may run the same test, so the
    number should have this process's id in it."""
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout
    return listed.splitlines().count(f"sleep {seconds}")


def git(folder: Path, *words: str) -> str:
    """Runs git with a name set, and returns what it prints."""
    who = ["-c", "user.name=test", "-c", "user.email=test@localhost"]
    command = ["git", *who, *words]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def committed(folder: Path) -> Path:
    """Makes a folder a repository whose first commit has all its files; returns the folder."""
    git(folder, "init")
    git(folder, "add", "--all")
    git(folder, "commit", "--message", "first")
    return folder


def wheelyard(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a command of wheelyard in a project, where its releases are made too."""
    command = [sys.executable, "-m", "wheelyard", *words]
    told = {**outer_environment(), **environment}
    return subprocess.run(command, cwd=folder, env=told, capture_output=True, text=True)


def outer_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "RELEASE_FOLDER"}


def real_release(*, large: bool = False) -> pytest.MarkDecorator:
    """Returns the mark for `pytestmark`. A large release needs tens of gigabytes of images, or more minutes than all
    others together.

    RELEASE_TESTS is set by the targets of the Makefile that run such tests.
    """
    wanted = os.environ.get("RELEASE_TESTS", "")
    reason = "minutes of real container builds; `make test-release` runs them"
    if large:
        reason = "tens of gigabytes of images, or many minutes; `make test-release ALL=1` runs them"
    is_off = wanted != "all" if large else not wanted
    return pytest.mark.skipif(is_off, reason=reason)

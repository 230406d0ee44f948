"""Provides the demo project: a copy of it in git, commands on it, and the record of its release."""

import json
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from repository import ROOT, committed
from wheelyard.core import engine

DEMO = Path(__file__).with_name("demo")


def copy_of_demo(folder: Path) -> Path:
    """Copies the demo project into a git repository. It pins torch as this repository does, so that their images share
    torch's layers."""
    shutil.copytree(DEMO, folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "ci/torch.lock", folder / "ci")
    (folder / ".gitignore").write_text("/build/\n/wheelhouse/\n*.egg-info/\n__pycache__/\n")
    return committed(folder)


def record(folder: Path) -> dict[str, dict[str, Any]]:
    tasks = json.loads((folder / "build/release/release.json").read_text())["jobs"]
    assert isinstance(tasks, dict)
    return tasks


@contextmanager
def engine_up() -> Iterator[str]:
    """Yields the command of a container engine that answers; one that was stopped is started for that time."""
    with tempfile.TemporaryDirectory() as folder:
        # The engine may outlive us.
        with warnings.catch_warnings(action="ignore", category=ResourceWarning):
            found = engine.ready(Path(folder), print)
        try:
            yield found.command
        finally:
            found.leave(print)


def containers(folder: Path) -> list[str]:
    """Returns the containers that a release of the project has left."""
    label = f"label=wheelyard.release={folder / 'build/release'}"
    with engine_up() as docker:
        command = [docker, "ps", "--all", "--quiet", "--filter", label]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


@dataclass(frozen=True)
class Process:
    pid: int
    command: str
    folder: Path


def processes(folder: Path) -> list[Process]:
    """Returns the processes that work in the project or name it."""
    return [process for process in _all() if f"{folder}/" in f"{process.command} {process.folder}/"]


def engines() -> set[int]:
    return {process.pid for process in _all() if process.command == "dockerd "}


def _all() -> Iterator[Process]:
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_text().replace("\0", " ")
            yield Process(int(process.name), command, (process / "cwd").readlink())
        except OSError:  # it has ended, or belongs to another user
            continue

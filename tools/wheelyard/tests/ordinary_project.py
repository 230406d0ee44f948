"""The project in ordinary/, released: what its tests share, whichever wheelyard releases it."""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from repository import committed, git

ORDINARY = Path(__file__).with_name("ordinary")
TORCHES = {"2.12": "cu130", "2.15": "cu132"}
PYTHONS = ["3.11", "3.13"]
CELLS = [(torch, python) for torch in TORCHES for python in PYTHONS]
# It outlives a test: what the compilers are given is the same each time.
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "wheelyard-tests"


def copy(folder: Path) -> Path:
    """The project in a git repository of its own, tagged."""
    shutil.copytree(ORDINARY, folder)
    (folder / ".gitignore").write_text("/build/\n")
    git(committed(folder), "tag", "-m", "first", "v1.2.0")
    return folder


def release(
    project: Path, command: list[str], environment: Mapping[str, str] = os.environ
) -> subprocess.CompletedProcess[str]:
    """`command` is wheelyard's."""
    clean = {name: value for name, value in environment.items() if name != "RELEASE_FOLDER"}
    words = [*command, "release", "--cache", str(CACHE)]
    return subprocess.run(words, cwd=project, env=clean, capture_output=True, text=True)


def jobs(project: Path) -> dict[str, dict[str, Any]]:
    found = json.loads((project / "build/release/release.json").read_text())["jobs"]
    assert isinstance(found, dict)
    return found


def wheels(project: Path) -> dict[tuple[str, str], Path]:
    """The wheel of each cell, by its name."""
    found = {}
    for torch, python in CELLS:
        tag = "cp" + python.replace(".", "")
        start = f"ordinary_ext-1.2.0+{TORCHES[torch]}torch{torch}-{tag}-{tag}-manylinux_2_"
        (found[torch, python],) = (project / "wheelhouse").glob(
            f"{start}*_{os.uname().machine}.whl"
        )
    return found


def what_pip_took(project: Path) -> dict[tuple[str, str], str]:
    """What real pip said that it took, by name, in each cell's container."""
    done = jobs(project)
    return {
        (torch, python): done[f"install/embedded-torch{torch}-python{python}"]["facts"]["verdict"]
        for torch, python in CELLS
    }

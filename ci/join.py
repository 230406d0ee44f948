"""Join: takes over what other jobs handed on below wheelhouse/handed/, files and records alike.

Runners share no disk. Each job uploads its release.json with the files that later jobs need; here
they become one record again. Two jobs that disagree, or a file that is not what its record says,
stop everything.
"""

import shutil
from pathlib import Path
from typing import Any

from ci.errors import Problem
from ci.project import commit, sha256
from ci.release import Release
from ci.state import State

FOLDER = "handed"


def run(release: Release) -> None:
    records = sorted((release.wheelhouse / FOLDER).glob("**/release.json"))
    if not records:
        raise Problem(
            f"there is no release.json below {release.wheelhouse / FOLDER}; put there what the "
            "earlier jobs uploaded, a folder for each"
        )
    for record in records:
        _take(release, record)
    release.state.write()
    release.display.say(f"joined {len(records)} records: {len(release.state.tasks)} tasks")


def _take(release: Release, record: Path) -> None:
    other = State(record.parent)
    job = record.parent.name
    here = {"version": release.project.version, "commit": commit().rstrip("+")}
    for key, value in here.items():
        if other.head.get(key) != value:
            raise Problem(
                f"{job} was made for {key} {other.head.get(key)}, but this tree has {value}; "
                "check out what it was made from, or run that job again"
            )
    release.state.head |= other.head
    for name, task in other.tasks.items():
        ours = release.state.tasks.get(name, task)
        if ours["outputs"] != task["outputs"]:
            raise Problem(
                f"{job} and another job made different files in {name}: {_differing(ours, task)}; "
                "builds must be reproducible: run both jobs again, and compare if it stays so"
            )
        for relative, recorded in task["outputs"].items():
            _copy(record.parent / relative, release.wheelhouse / relative, recorded, job)
        release.state.tasks[name] = ours


def _copy(source: Path, target: Path, recorded: str, job: str) -> None:
    """Copies what was handed on; what was not is missed by the step that needs it."""
    if not source.exists():
        return
    if sha256(source) != recorded:
        raise Problem(
            f"{source.name} from {job} is not what its record says; run that job again: "
            "the file was altered, or cut off on its way"
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def _differing(ours: dict[str, Any], theirs: dict[str, Any]) -> str:
    return ", ".join(
        sorted(name for name, _ in ours["outputs"].items() ^ theirs["outputs"].items())
    )

"""Joining what other jobs handed on: one record again, or a refusal that names the job."""

import json
import shutil
from pathlib import Path

import pytest
from demo_wheel import make_wheel

from ci import join, project
from ci.errors import Problem
from ci.release import Release
from ci.state import Result, State, Task


def job(release: Release, name: str, **tasks: list[Path]) -> Path:
    """The artifact of a job: its record, and the files that its tasks made."""
    folder = release.wheelhouse / join.FOLDER / name
    state = State(folder)
    state.head |= {"version": release.project.version, "commit": project.commit().rstrip("+")}
    for task, files in tasks.items():
        folder.mkdir(parents=True, exist_ok=True)
        made = [Path(shutil.copy(file, folder)) for file in files]
        step, _, unit = task.partition("_")
        state.passed(Task(step, unit, {}, lambda _: Result()), Result(made), 1.0)
    return folder


@pytest.fixture
def wheels(tmp_path: Path) -> list[Path]:
    return [make_wheel(tmp_path / "made", name) for name in ("one", "two")]


def test_two_builds_become_one_record(release: Release, wheels: list[Path]) -> None:
    job(release, "build-a", repair_a=[wheels[0]])
    job(release, "build-b", repair_b=[wheels[1]])
    join.run(release)
    assert set(State(release.wheelhouse).tasks) == {"repair/a", "repair/b"}
    for name, wheel in zip("ab", wheels, strict=True):
        (path,) = release.state.outputs(f"repair/{name}")
        assert path.read_bytes() == wheel.read_bytes()


def test_jobs_that_disagree_are_refused(release: Release, tmp_path: Path) -> None:
    job(release, "build-a", build_sdist=[make_wheel(tmp_path / "a", text="a")])
    job(release, "build-b", build_sdist=[make_wheel(tmp_path / "b", text="b")])
    with pytest.raises(Problem, match="made different files in build/sdist"):
        join.run(release)


def test_an_altered_file_is_refused(release: Release, wheels: list[Path]) -> None:
    folder = job(release, "gate", repair_a=[wheels[0]])
    (folder / wheels[0].name).write_bytes(b"other")
    with pytest.raises(Problem, match="from gate is not what its record says"):
        join.run(release)


def test_a_record_of_another_commit_is_refused(release: Release, wheels: list[Path]) -> None:
    file = job(release, "gate", repair_a=[wheels[0]]) / "release.json"
    content = json.loads(file.read_text())
    file.write_text(json.dumps({**content, "commit": "0" * 40}))
    with pytest.raises(Problem, match="gate was made for commit 0000"):
        join.run(release)


def test_nothing_handed_on(release: Release) -> None:
    with pytest.raises(Problem, match=r"there is no release\.json below"):
        join.run(release)


def test_what_was_not_handed_on_is_missed_by_the_next_step(release: Release) -> None:
    job(release, "plan", image_x=[])
    join.run(release)
    with pytest.raises(Problem, match="`repair/x86_64` has not passed yet"):
        release.artifacts()

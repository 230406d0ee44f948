"""release.json: a task is done while its inputs and outputs are as recorded, and not otherwise."""

import json
from pathlib import Path

import pytest

from ci.errors import Problem
from ci.state import Result, State, Task


def task(**inputs: str) -> Task:
    return Task("build", "x86_64", dict(inputs), lambda _: Result())


@pytest.fixture
def state(tmp_path: Path) -> State:
    made = State(tmp_path)
    (tmp_path / "a.whl").write_text("bytes")
    made.passed(task(sdist="1"), Result([tmp_path / "a.whl"]), 1.5)
    return made


def test_done_survives_a_restart(state: State) -> None:
    again = State(state.wheelhouse)
    assert again.is_done(task(sdist="1"))
    assert again.tasks["build/x86_64"]["seconds"] == 1.5


def test_other_inputs_are_not_done(state: State) -> None:
    assert not state.is_done(task(sdist="2"))


def test_a_missing_output_is_not_done(state: State) -> None:
    (state.wheelhouse / "a.whl").unlink()
    assert not state.is_done(task(sdist="1"))
    with pytest.raises(
        Problem, match=r"a\.whl of build/x86_64 is missing; run `python -m ci build`"
    ):
        state.outputs("build/x86_64")


def test_an_altered_output_is_refused(state: State) -> None:
    (state.wheelhouse / "a.whl").write_text("other bytes")
    with pytest.raises(Problem, match=r"a\.whl was altered after build/x86_64"):
        state.is_done(task(sdist="1"))


def test_a_failure_is_recorded_and_not_done(state: State) -> None:
    state.failed(task(sdist="1"), "no compiler", 2.0)
    assert not state.is_done(task(sdist="1"))
    assert json.loads(state.file.read_text())["tasks"]["build/x86_64"]["verdict"] == "failed"
    with pytest.raises(Problem, match="run `python -m ci build` first"):
        state.outputs("build/x86_64")


def test_a_superseded_output_is_removed(state: State) -> None:
    (state.wheelhouse / "b.whl").write_text("newer")
    state.passed(task(sdist="2"), Result([state.wheelhouse / "b.whl"]), 1.0)
    assert not (state.wheelhouse / "a.whl").exists()


def test_a_damaged_record_says_what_to_do(state: State) -> None:
    state.file.write_text('{"tasks": ')
    with pytest.raises(Problem, match="make clean-release"):
        State(state.wheelhouse)

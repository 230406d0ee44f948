"""Joining what other jobs handed on: one record again, or a refusal that names the job."""

import json
from pathlib import Path

import pytest
from demo_wheel import make_wheel
from recorded import job, passed
from wheelyard.core import graph
from wheelyard.core.graph import Graph
from wheelyard.core.record import Record
from wheelyard.problem import Problem
from wheelyard.run import join

HERE = {"version": "1.0", "commit": "abc"}
PLAN = graph.make(
    [
        job("build/sdist", outputs=("*.whl",)),
        job("repair/a", outputs=("*.whl",)),
        job("repair/b", outputs=("*.whl",)),
        job("gpu/a", outputs=("evidence/gpu-a.json",)),
    ]
)


def handed(record: Record, name: str, **jobs: list[Path]) -> Path:
    """The artifact of a job: its record, and the files that its jobs made."""
    folder = record.wheelhouse / join.FOLDER / name
    folder.mkdir(parents=True, exist_ok=True)
    other = Record(folder)
    other.head |= HERE
    for job_name, files in jobs.items():
        passed(other, job_name.replace("_", "/"), *files)
    return folder


def joined(record: Record, plan: Graph = PLAN) -> str:
    return join.join(plan, record, HERE)


def change(folder: Path, **values: object) -> None:
    """Changes the record that a job hands on; keys of its one job, or of its head."""
    file = folder / "release.json"
    content = json.loads(file.read_text())
    for key, value in values.items():
        place = content if key in content else next(iter(content["jobs"].values()))
        place[key] = value
    file.write_text(json.dumps(content))


@pytest.fixture
def wheels(tmp_path: Path) -> list[Path]:
    return [make_wheel(tmp_path, name) for name in ("one", "two")]


def test_records_and_files_come_together(record: Record, wheels: list[Path]) -> None:
    handed(record, "build-a", build_sdist=[wheels[0]], repair_a=[wheels[1]])
    handed(record, "build-b", build_sdist=[wheels[0]])
    assert joined(record) == "joined 2 records: 2 jobs"
    assert [file.name for file in record.files("repair/a")] == [wheels[1].name]
    assert Record(record.wheelhouse).jobs == record.jobs


def test_two_jobs_that_disagree(record: Record, wheels: list[Path]) -> None:
    handed(record, "build-a", build_sdist=[wheels[0]])
    handed(record, "build-b", build_sdist=[wheels[1]])
    with pytest.raises(
        Problem, match="build-b and another job made different files in build/sdist"
    ):
        joined(record)


def test_an_altered_file_is_refused(record: Record, wheels: list[Path]) -> None:
    folder = handed(record, "gate", repair_a=[wheels[0]])
    (folder / wheels[0].name).write_bytes(b"other")
    with pytest.raises(Problem, match="from gate is not what its record says"):
        joined(record)


def test_a_record_of_another_commit_is_refused(record: Record, wheels: list[Path]) -> None:
    change(handed(record, "gate", repair_a=[wheels[0]]), commit="0" * 40)
    with pytest.raises(Problem, match="gate was made for commit 0000"):
        joined(record)


def test_a_file_outside_the_wheelhouse_is_refused(record: Record, wheels: list[Path]) -> None:
    folder = handed(record, "gpu", repair_a=[wheels[0]])
    (folder.parents[2] / "pipeline.py").write_text("mine")
    (folder.parents[1] / "evil.py").write_text("theirs")
    change(folder, outputs={"../../evil.py": "0" * 64})
    with pytest.raises(
        Problem, match=r"repair/a names the file \.\./\.\./evil\.py, which it is not for"
    ):
        joined(record)


def test_a_file_that_the_job_is_not_for_is_refused(record: Record, wheels: list[Path]) -> None:
    """The GPU's job hands on a wheel beside its evidence."""
    folder = handed(record, "gpu", gpu_a=[wheels[0]])
    with pytest.raises(Problem, match=r"gpu/a names the file one-1\.0-py3-none-any\.whl"):
        joined(record)
    assert not (record.wheelhouse / wheels[0].name).exists()
    assert folder.exists()


def test_a_job_that_the_plan_does_not_have_is_refused(record: Record, wheels: list[Path]) -> None:
    handed(record, "gpu", attest_pypi=[wheels[0]])
    with pytest.raises(Problem, match="gpu hands on `attest/pypi`, which is no job of this plan"):
        joined(record)


@pytest.mark.parametrize("entry", ["text", {"verdict": "passed"}, {"outputs": []}])
def test_a_damaged_entry_is_refused(record: Record, wheels: list[Path], entry: object) -> None:
    change(handed(record, "gate", repair_a=[wheels[0]]), jobs={"repair/a": entry})
    with pytest.raises(Problem, match="the record of repair/a from gate is damaged"):
        joined(record)


def test_nothing_handed_on(record: Record) -> None:
    with pytest.raises(Problem, match=r"there is no release\.json below"):
        joined(record)


def test_what_was_not_handed_on_is_missed_by_the_next_step(
    record: Record, wheels: list[Path]
) -> None:
    folder = handed(record, "build", repair_a=[wheels[0]])
    (folder / wheels[0].name).unlink()
    joined(record)
    with pytest.raises(Problem, match="of repair/a is missing"):
        record.files("repair/a")
    with pytest.raises(Problem, match="`repair/b` has not passed yet"):
        record.files("repair/b")

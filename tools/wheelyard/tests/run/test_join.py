"""Tests joining what other jobs handed on: one record again, or a refusal that names the job."""

import json
import shutil
from pathlib import Path

import pytest
from demo_wheel import make_wheel
from recorded import job, passed
from repository import ROOT
from wheelyard import steps
from wheelyard.core.digest import sha256
from wheelyard.core.job import Graph
from wheelyard.core.record import Record
from wheelyard.plan import github
from wheelyard.plan import plan as planning
from wheelyard.plan.plan import Options, Plan
from wheelyard.problem import Problem
from wheelyard.run import join
from wheelyard.run.join import Told

HERE = {"version": "1.0", "commit": "abc"}
PLAN = Graph.of(
    [
        job("build/sdist", outputs=("*.whl",)),
        job("repair/a", outputs=("*.whl",)),
        job("repair/b", outputs=("*.whl",)),
        job("gpu/a", outputs=("evidence/gpu-a.json",)),
    ]
)


def handed(record: Record, name: str, **jobs: list[Path]) -> Path:
    """Makes the artifact of a job: its record, and the files that its jobs made."""
    folder = record.folder / join.FOLDER / name
    folder.mkdir(parents=True, exist_ok=True)
    other = Record(folder)
    other.head |= HERE
    for job_name, files in jobs.items():
        passed(other, job_name.replace("_", "/"), *files)
    return folder


MAY = github.may_hand_on(planning.load(Options(place="github"), ROOT))
RELEASED = ["build/sdist", "repair/a", "repair/b"]


def joined(record: Record, *told: Told, plan: Graph = PLAN) -> str:
    return join.join(plan, record, HERE, MAY, RELEASED, told)


def change(folder: Path, **values: object) -> None:
    """Changes keys of the one job, or of the head, in the record that a job hands on."""
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
    handed(record, "sdist", build_sdist=[wheels[0]])
    handed(record, "build-a", repair_a=[wheels[1]])
    assert joined(record) == "joined 2 records: 2 jobs"
    assert [file.name for file in record.files("repair/a")] == [wheels[1].name]
    assert Record(record.folder).jobs == record.jobs


def test_what_was_taken_over_is_not_handed_on(record: Record, wheels: list[Path]) -> None:
    """A job can hand on only what it did itself."""
    handed(record, "build-a", repair_a=[wheels[0]])
    joined(record)
    passed(record, "gpu/a")
    assert json.loads(record.file.read_text())["jobs"].keys() == {"gpu/a"}
    again = Record(record.folder)
    assert (again.jobs.keys(), again.taken) == ({"repair/a", "gpu/a"}, {"repair/a"})
    whole = json.loads(again.write_whole(record.folder / "whole.json").read_text())
    assert whole["jobs"].keys() == again.jobs.keys()


def test_two_artifacts_that_hand_on_the_same(record: Record, wheels: list[Path]) -> None:
    handed(record, "sdist", build_sdist=[wheels[0]])
    handed(record, "build-sdist", build_sdist=[wheels[0]])
    with pytest.raises(Problem, match="sdist hands on `build/sdist`, and so does build-sdist"):
        joined(record)


def test_this_machine_made_other_files(record: Record, wheels: list[Path]) -> None:
    passed(record, "repair/a", wheels[0])
    handed(record, "build-a", repair_a=[wheels[1]])
    with pytest.raises(
        Problem, match="build-a and this machine have made different files in repair/a"
    ):
        joined(record)


def test_an_altered_file_is_refused(record: Record, wheels: list[Path]) -> None:
    folder = handed(record, "build-a", repair_a=[wheels[0]])
    (folder / wheels[0].name).write_bytes(b"other")
    with pytest.raises(Problem, match="from build-a is not what its record says"):
        joined(record)


def test_other_bytes_than_the_workflow_was_told_are_refused(
    record: Record, wheels: list[Path]
) -> None:
    """The artifact was replaced, wheel and record alike."""
    handed(record, "build-a", repair_a=[wheels[0]])
    told = Told("build", {wheels[0].name: "0" * 64})
    with pytest.raises(
        Problem, match=r"build-a hands on one.*, but build has told the workflow 000"
    ):
        joined(record, told)
    assert not (record.folder / wheels[0].name).exists()
    joined(record, Told("build", {wheels[0].name: sha256(wheels[0])}))


def test_a_file_that_nobody_told_of_is_refused(record: Record, wheels: list[Path]) -> None:
    handed(record, "build-a", repair_a=[wheels[0]])
    handed(record, "build-b", repair_b=[wheels[1]])
    told = {wheels[0].name: sha256(wheels[0])}
    with pytest.raises(Problem, match=r"build-b hands on two.*, for which gate gave no digest"):
        joined(record, Told("gate", told, is_all=True))
    joined(record, Told("build", told))


def test_digests_are_told_and_read_again(record: Record, wheels: list[Path]) -> None:
    handed(record, "build-a", repair_a=[wheels[0]])
    joined(record)
    text = join.digests(record, RELEASED)
    assert join.told(f"gate={text}") == Told("gate", {wheels[0].name: sha256(wheels[0])})
    for bad in ("", "gate=abc x", f"gate={'0' * 64}", f"={text}"):
        with pytest.raises(Problem, match="does not say what a job made"):
            join.told(bad)
    assert join.told("build=").files == {}
    with pytest.raises(Problem, match="gate gave no digests"):
        join.told("gate=", is_all=True)


def test_a_record_of_another_commit_is_refused(record: Record, wheels: list[Path]) -> None:
    change(handed(record, "build-a", repair_a=[wheels[0]]), commit="0" * 40)
    with pytest.raises(Problem, match="build-a was made for commit 0000"):
        joined(record)


def test_a_file_that_the_job_is_not_for_is_refused(record: Record, wheels: list[Path]) -> None:
    """The GPU's job hands on a wheel beside its evidence."""
    handed(record, "gpu", gpu_a=[wheels[0]])
    with pytest.raises(Problem, match=r"gpu/a names the file one-1\.0-py3-none-any\.whl"):
        joined(record)
    assert not (record.folder / wheels[0].name).exists()


def test_a_job_that_the_artifact_is_not_for_is_refused(record: Record, wheels: list[Path]) -> None:
    for artifact in ("gpu", "build-b", "build-[a]", "unknown"):
        folder = handed(record, artifact, repair_a=[wheels[0]])
        with pytest.raises(Problem, match=r"hands on `repair/a`, which is not its own"):
            joined(record)
        shutil.rmtree(folder)


@pytest.mark.parametrize("artifact", [*github.ARTIFACTS, "build-aarch64", "verify-1-0", "unknown"])
def test_an_artifact_hands_on_what_it_is_for_and_nothing_else(artifact: str) -> None:
    jobs = ["build/sdist", "repair/x86_64", "gate/x86_64", "smoke/x86_64", "gpu/x86_64"]
    jobs += ["attest/files", "publish/testpypi", "install/testpypi-x", "publish/pypi"]
    own = dict(zip(github.ARTIFACTS, jobs, strict=True)).get(artifact)
    artifact = artifact.replace("*", "x86_64")
    assert [job for job in jobs if MAY(artifact, job)] == ([own] if own else [])


def test_an_artifact_inside_another_is_not_looked_at(record: Record, wheels: list[Path]) -> None:
    handed(record, "gpu/gate", repair_a=[wheels[0]])
    with pytest.raises(Problem, match=r"there is no release\.json below"):
        joined(record)


def test_a_link_is_refused(record: Record, wheels: list[Path]) -> None:
    folder = handed(record, "gpu", repair_a=[wheels[0]])
    (folder / "evidence").symlink_to("/etc")
    with pytest.raises(Problem, match="gpu holds the link evidence"):
        joined(record)


def test_a_job_that_the_plan_does_not_have_is_refused(record: Record, wheels: list[Path]) -> None:
    handed(record, "gpu", attest_pypi=[wheels[0]])
    with pytest.raises(
        Problem, match="gpu hands on `attest/pypi`, which is not a job of this plan"
    ):
        joined(record)


ENTRY = {"verdict": "passed", "seconds": 1, "inputs": {}, "facts": {}}


@pytest.mark.parametrize(
    "entry", ["text", {"verdict": "passed"}, {"outputs": []}, ENTRY | {"outputs": {"a.whl": 1}}]
)
def test_a_damaged_entry_is_refused(record: Record, wheels: list[Path], entry: object) -> None:
    change(handed(record, "gate", repair_a=[wheels[0]]), jobs={"repair/a": entry})
    with pytest.raises(Problem, match="the record of repair/a from gate is damaged"):
        joined(record)


@pytest.mark.parametrize("text", ["", "[]", '{"jobs": []}', "[" * 100_000])
def test_a_damaged_record_is_refused(record: Record, wheels: list[Path], text: str) -> None:
    (handed(record, "gate", repair_a=[wheels[0]]) / "release.json").write_text(text)
    with pytest.raises(Problem, match=r"gate/release\.json is damaged"):
        joined(record)


def test_what_was_not_handed_on_is_missed_by_the_next_step(
    record: Record, wheels: list[Path]
) -> None:
    folder = handed(record, "build-a", repair_a=[wheels[0]])
    (folder / wheels[0].name).unlink()
    joined(record)
    with pytest.raises(Problem, match="of repair/a is missing"):
        record.files("repair/a")
    with pytest.raises(Problem, match="`repair/b` has not passed yet"):
        record.files("repair/b")


def test_a_file_of_another_job_is_refused(record: Record, plan: Plan, wheels: list[Path]) -> None:
    """The record is relabelled: it has a wheel under the architecture that needs no evidence."""
    theirs = wheels[0].rename(
        wheels[0].with_name(
            f"{plan.project.normalised}-{plan.project.version}-py3-none-linux_x86_64.whl"
        )
    )
    handed(record, "build-a", repair_a=[theirs])
    with pytest.raises(
        Problem, match=r"repair/a may not leave a file named .*; it would be repair/x8"
    ):
        join.join(PLAN, record, HERE, MAY, RELEASED, check_owners=plan.check_owners)


def test_a_passed_job_has_made_what_it_is_for(record: Record, wheels: list[Path]) -> None:
    """With no outputs the release would silently lack a wheel; with two, one would be another job's."""
    folder = handed(record, "build-a", repair_a=[wheels[0]])
    change(folder, outputs={})
    with pytest.raises(Problem, match=r"repair/a made no \*\.whl"):
        joined(record)
    change(folder, outputs={"x.whl": "0" * 64, "y.whl": "0" * 64})
    with pytest.raises(Problem, match=r"repair/a made 2 files \*\.whl"):
        joined(record)


def test_an_artifact_that_was_left_out(record: Record, wheels: list[Path]) -> None:
    handed(record, "build-a", repair_a=[wheels[0]])
    told = Told("gate", {file.name: sha256(file) for file in wheels}, is_all=True)
    with pytest.raises(Problem, match=r"gate gave the digests of two-1.0.*, which no artifact has"):
        joined(record, told)


def test_an_artifact_of_verify_is_for_its_own_cells() -> None:
    plan = planning.load(Options(place="github"), ROOT)
    jobs = [j.name for j in steps.planned(plan, "verify").jobs.values() if j.step == "verify"]
    owners = {job: [n for n in range(300) if MAY(f"verify-1-{n}", job)] for job in jobs}
    assert all(len(numbers) == 1 for numbers in owners.values()), "each verdict comes from one job"
    assert len({numbers[0] for numbers in owners.values()}) > 5
    assert not MAY("verify-2-0", jobs[0])
    assert not MAY("verify-", jobs[0])

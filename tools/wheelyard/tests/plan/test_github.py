"""Tests the plan as GitHub's job matrices: each within GitHub's limit, every job once, on a native runner."""

import json
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from repository import ROOT, TOOL
from wheelyard import steps
from wheelyard.plan import github
from wheelyard.plan import plan as planning
from wheelyard.plan.cells import run_cells
from wheelyard.plan.plan import Options, Plan


def jobs(chunked: dict[str, Any]) -> list[dict[str, str]]:
    """Returns all jobs of a matrix of chunks; each chunk must be within the limit."""
    parts = [json.loads(chunk["jobs"])["include"] for chunk in chunked["include"]]
    assert len(parts) <= github.LIMIT
    assert all(0 < len(part) <= github.LIMIT for part in parts)
    return [job for part in parts for job in part]


def test_more_builds_than_a_matrix_may_have_are_in_chunks(plan: Plan) -> None:
    each = plan.asked(strategy="each", place="github", base="pypa")
    assert len(each.all_wheels) > github.LIMIT
    builds = jobs(github.matrices(each)["build"])
    assert [job["name"] for job in builds] == [wheel.name for wheel in each.wheels]
    assert len(each.wheels) == len(each.all_wheels)


def test_every_job_has_a_native_runner(plan: Plan) -> None:
    made = github.matrices(plan)
    for job in [*jobs(made["build"]), *jobs(made["verify"]), *made["smoke"]["include"]]:
        assert job["runner"] == plan.matrix.arch[job["arch"]].runner
    verify = jobs(made["verify"])
    assert len(verify) == len(plan.matrix.arch) * (len(run_cells(plan.matrix)) + 1)


def test_the_limit_is_kept_whatever_the_number() -> None:
    for count in (1, 255, 256, 257, 1000):
        named = [{"name": str(number)} for number in range(count)]
        assert jobs(github.chunks(named)) == named


@pytest.mark.parametrize("machines", ["x86_64", "x86_64 aarch64"])
@pytest.mark.parametrize("project", [ROOT, TOOL / "tests/ordinary"])
def test_every_job_of_the_matrix_has_something_to_do(
    project: Path, machines: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """wheelyard refuses a pattern that matches no wheel or no job: the workflow would go red."""
    monkeypatch.setenv("WHEELYARD_MACHINES", machines)
    monkeypatch.setenv("RELEASE_FOLDER", str(tmp_path))
    plan = planning.load(Options(place="github", base="debian"), project)
    units = [job.unit for job in steps.planned(plan, "verify").of_step("verify")]
    for job in jobs(github.matrices(plan)["verify"]):
        assert any(fnmatchcase(wheel.name, job["wheel"]) for wheel in plan.wheels), job
        assert any(fnmatchcase(unit, job["task"]) for unit in units), job

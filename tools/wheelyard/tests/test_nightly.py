"""Tests torch's nightly: the newest build that an index has, and a release's own jobs with it in place of all
torches."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from demo_wheel import serving
from wheelyard import nightly, steps
from wheelyard.plan.plan import Plan
from wheelyard.problem import Problem

VERSIONS = {
    "2.16.0.dev20261101+cpu": "cp313",
    "2.16.0.dev20261115+cpu": "cp313",
    "2.16.0.dev20261116+cpu": "cp314",
    "2.15.0": "cp313",
}


@pytest.fixture
def index(tmp_path: Path) -> Iterator[str]:
    """Yields a package index on this machine with the names of some torches."""
    folder = tmp_path / "simple/torch"
    folder.mkdir(parents=True)
    for version, python in VERSIONS.items():
        (folder / f"torch-{version}-{python}-{python}-manylinux_2_28_x86_64.whl").touch()
    with serving(tmp_path) as url:
        yield url


def test_the_newest_build_of_a_python_is_taken(index: str) -> None:
    assert nightly.newest(index, "3.13", "x86_64") == "2.16.0.dev20261115+cpu"


def test_an_index_without_that_python_is_named(index: str) -> None:
    with pytest.raises(Problem, match=rf"pip finds no torch for Python 3\.12 on {index}"):
        nightly.newest(index, "3.12", "x86_64")


@pytest.mark.parametrize("index", ["", "https://index.example/nightly/"], ids=["PyPI", "own"])
def test_the_jobs_are_those_of_a_release_with_that_torch(plan: Plan, index: str) -> None:
    version = "2.16.0.dev20261115+cpu"
    jobs = steps.planned(nightly.with_torch(plan, version, index, "3.13"), nightly.LAST)
    made = [job.inputs["image"]["arguments"] for job in jobs.of_step("image")]
    assert {image["TORCH"] for image in made} == {version}
    assert {image.get("PIP_INDEX_URL", "") for image in made} == {index}
    verified = {job.unit: job for job in jobs.of_step("verify")}
    assert f"{plan.machine}-torchnightly-python3.13" in verified
    links = [job for unit, job in verified.items() if unit.endswith("-link")]
    assert {(job.inputs["torch"], job.inputs["index"]) for job in links} == {(version, index)}

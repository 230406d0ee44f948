"""Tests PEP 740 attestations: which files are signed, and that no job continues unsigned. Signing itself needs
GitHub."""

from pathlib import Path

import pytest
from demo_wheel import make_wheel
from recorded import workspace
from wheelyard.plan.plan import Plan
from wheelyard.problem import Problem
from wheelyard.steps import attest


def test_it_signs_the_sdist_and_every_wheel(plan: Plan) -> None:
    (job,) = attest.jobs(plan)
    assert job.after == ["build/sdist", *(f"repair/{wheel.name}" for wheel in plan.wheels)]
    assert job.needs.secrets


def test_a_job_without_an_identity_fails(
    plan: Plan, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv(attest.IDENTITY, raising=False)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    (job,) = attest.jobs(plan)
    with pytest.raises(Problem, match="id-token: write"):
        attest.run(job, workspace(tmp_path, {"files": [make_wheel(tmp_path)]}))


def test_on_a_persons_machine_nothing_is_signed(
    plan: Plan, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv(attest.IDENTITY, raising=False)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    (job,) = attest.jobs(plan)
    place = workspace(tmp_path, {"files": [make_wheel(tmp_path)]})
    attest.run(job, place)
    assert list(place.out.iterdir()) == []


def test_without_the_package_that_signs_it_says_what_to_install(
    plan: Plan, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(attest.IDENTITY, "https://runner.example")
    (job,) = attest.jobs(plan)
    place = workspace(tmp_path, {}, tools={"pypi-attestations": None})
    with pytest.raises(Problem, match=r"pip install 'wheelyard\[attestations\]'"):
        attest.run(job, place)

"""PEP 740 attestations: what is signed, and that no job goes on unsigned. Signing needs GitHub."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from demo_wheel import make_wheel
from pypi_attestations import Attestation, Distribution
from recorded import workspace
from sigstore.dsse import Statement
from wheelyard.plan.plan import Plan
from wheelyard.problem import Problem
from wheelyard.steps import attest


class Signed(Exception):
    """Carries the statement away from where GitHub's identity would be needed."""

    def __init__(self, statement: Statement) -> None:
        self.content: dict[str, Any] = json.loads(statement._contents)


class Signer:
    def sign_dsse(self, statement: Statement) -> None:
        raise Signed(statement)


def test_the_statement_names_the_file_its_digest_and_the_publishing(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path)
    with pytest.raises(Signed) as signed:
        Attestation.sign(Signer(), Distribution.from_file(wheel))  # type: ignore[arg-type]
    statement = signed.value.content
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    assert statement["subject"] == [{"name": wheel.name, "digest": {"sha256": digest}}]
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["predicateType"] == "https://docs.pypi.org/attestations/publish/v1"


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

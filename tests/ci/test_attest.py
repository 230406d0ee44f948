"""PEP 740 attestations: what is signed, and that no job goes on unsigned. Signing needs GitHub."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from demo_wheel import make_wheel
from pypi_attestations import Attestation, Distribution
from sigstore.dsse import Statement

from ci import attest
from ci.errors import Problem
from ci.release import Release
from ci.state import Result, Task


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


@pytest.fixture
def made(release: Release) -> Release:
    """A release whose files are built."""
    for step, unit in (("build", "sdist"), ("repair", "x86_64"), ("repair", "aarch64")):
        file = make_wheel(release.wheelhouse, unit)
        release.state.passed(Task(step, unit, {}, lambda _: Result()), Result([file]), 1.0)
    return release


def test_a_job_without_an_identity_fails(
    made: Release, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv(attest.IDENTITY, raising=False)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    (task,) = attest.tasks(made)
    with pytest.raises(Problem, match="id-token: write"):
        task.run(tmp_path / "log")


def test_on_a_persons_machine_nothing_is_signed(
    made: Release, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv(attest.IDENTITY, raising=False)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    (task,) = attest.tasks(made)
    assert task.run(tmp_path / "log").outputs == []

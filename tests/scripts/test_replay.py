"""The replay's cases are whole, and its machines are what `wheelscope machine` saves."""

import json

import jsonschema
import pytest

from scripts.replay.cases import ROOT, Case, load_cases, load_environments
from scripts.replay.machines import machine

CASES = load_cases()


def test_a_failure_has_a_report_and_a_success_has_none() -> None:
    for case in CASES:
        assert (case.kind == "healthy") == (case.word is None) == (case.report is None), case.wheel


def test_no_case_stands_twice() -> None:
    def identity(case: Case) -> tuple[str, str, str | None]:
        return case.wheel, case.environment, case.python

    assert len(set(map(identity, CASES))) == len(CASES)
    reports = [case.report for case in CASES if case.report]
    assert all(report.startswith("https://github.com/") for report in reports)


@pytest.mark.parametrize("name", load_environments())
def test_a_machine_is_one_that_wheelscope_reads(name: str) -> None:
    schema = json.loads((ROOT / "csrc/wheelscope/schema.json").read_text())
    document = machine(load_environments()[name])
    jsonschema.Draft202012Validator(schema).validate(document)
    tags = document["machine"]["python"]["tags"]
    assert tags[0] == "cp311-cp311-linux_x86_64"
    assert "cp311-cp311-manylinux_2_36_x86_64" in tags
    assert "cp311-cp311-manylinux_2_37_x86_64" not in tags
    assert "py3-none-any" in tags

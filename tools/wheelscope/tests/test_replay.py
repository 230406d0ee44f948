"""The replay's cases are complete, and its machines are like those that `wheelscope machine`
saves."""

import pytest
from program import valid

from validation.replay.cases import Case, load_cases, load_environments
from validation.replay.machines import machine
from validation.replay.mixtures import load_mixtures

CASES = load_cases()
MIXTURES = load_mixtures()
ENVIRONMENTS = load_environments()


def test_a_failure_has_a_report_and_a_success_has_none() -> None:
    for case in CASES:
        works = case.happened == "works"
        assert case.kind.startswith("healthy") == works == (case.report is None), case


def test_what_cannot_be_made_here_is_a_machine_of_a_report() -> None:
    for case in CASES:
        assert (ENVIRONMENTS[case.environment].suite is None) == (case.happened == "reported"), case


def test_no_case_stands_twice() -> None:
    def identity(case: Case) -> tuple[str, str, str | None]:
        return case.wheel, case.environment, case.python

    assert len(set(map(identity, CASES))) == len(CASES)
    assert len({(one.environment, one.what) for one in MIXTURES}) == len(MIXTURES)
    reports = [one.report for one in (*CASES, *MIXTURES) if one.report]
    assert all(report.startswith("https://github.com/") for report in reports)


def test_a_mixture_was_asked() -> None:
    for mixture in MIXTURES:
        assert mixture.verdict in ("works", "depends", "fails"), mixture
        assert mixture.install or mixture.uninstall or mixture.path, mixture


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_a_machine_is_one_that_wheelscope_reads(name: str) -> None:
    environment = ENVIRONMENTS[name]
    document = valid(machine(environment))
    tags = document["machine"]["python"]["tags"]
    abi = "cp" + "".join(environment.python.split(".")[:2])
    glibc = int(environment.glibc.removeprefix("2."))
    assert tags[0] == f"{abi}-{abi}-linux_x86_64"
    assert f"{abi}-{abi}-manylinux_2_{glibc}_x86_64" in tags
    assert f"{abi}-{abi}-manylinux_2_{glibc + 1}_x86_64" not in tags
    assert "py3-none-any" in tags

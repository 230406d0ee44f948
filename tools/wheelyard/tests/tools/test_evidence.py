"""Tests which evidence proves that a wheel ran on a GPU, and what is said of other evidence."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from recorded import WHEEL, proof
from repository import ROOT
from wheelyard.core.digest import sha256
from wheelyard.problem import Problem
from wheelyard.steps.smoke import PROGRAM
from wheelyard.tools import evidence
from wheelyard.tools.evidence import Spec, Wanted

SPEC = Spec("a spec", frozenset({("add", "float32")}))
TORCHES = ("2.11", "2.15")
WANTED = Wanted("abc", sha256(PROGRAM), None, SPEC, WHEEL, TORCHES)
REFUSED: dict[str, dict[str, Any]] = {
    "was made without a GPU": {"gpu": None},
    "says that checks failed": {"passed": False},
    "says that checks failed ": {"failures": ["add float32 cuda: wrong"]},
    "was made by another version of smoke.py": {"program": "0" * 64},
    "was made with other checks than this release has": {"spec": "an easier spec"},
    "was made with another smoke command": {"command": "true"},
    "has no check on a GPU of add float32": {"checks": {"add float32 cpu shapes": 5}},
    "has no check on a GPU of add float32 ": {"checks": {"add float32 cuda shapes": 0}},
    "has no check on a GPU of add float32  ": {"checks": {"add float64 cuda shapes": 5}},
    "was made by an older smoke test (schema 2)": {"schema_version": 2},
    "says that checks failed  ": {"runs": [{"passed": False, "failures": ["wrong"]}]},
    "is about a file named other-1.0-py3-none-any.whl": {"wheel": "other-1.0-py3-none-any.whl"},
    "was not made from the wheel itself": {"installed": True},
    "was not made from the wheel itself ": {"loaded": {}},
    "was made with torch 1.0.0, which the matrix does not have": {"torch": "1.0.0"},
    "lacks what a smoke test writes": {"checks": 75},
    "lacks what a smoke test writes  ": {"runs": []},
    "lacks what a smoke test writes ": {"torch": None},
}


def write(file: Path, seen: object) -> Path:
    file.write_text(json.dumps(seen))
    return file


def test_these_bytes_on_a_gpu_with_every_op_and_dtype_checked(tmp_path: Path) -> None:
    file = write(tmp_path / "x.json", proof())
    found, refused = evidence.judged(WANTED, [file])
    assert ([seen["file"] for seen in found], refused) == (["x.json"], [])


@pytest.mark.parametrize("reason", REFUSED)
def test_anything_else_is_no_evidence_and_says_why(tmp_path: Path, reason: str) -> None:
    file = write(tmp_path / "x.json", proof(**REFUSED[reason]))
    assert evidence.judged(WANTED, [file]) == ([], [f"x.json {reason.strip()}"])


TESTS = {"command": "pytest", "files": "of them"}


@pytest.mark.parametrize(
    "ran",
    [
        None,
        "yes",
        {**TESTS, "passed": 0},
        {**TESTS, "files": "x", "passed": 3},
        {**TESTS, "command": "true"},
    ],
)
def test_the_tests_of_the_release_must_have_passed_there_too(tmp_path: Path, ran: object) -> None:
    wanted = dataclasses.replace(WANTED, tests=TESTS)
    file = write(tmp_path / "x.json", proof(tests=ran))
    assert evidence.judged(wanted, [file])[1] == ["x.json has no run of this release's tests"]
    write(file, proof(tests={**TESTS, "passed": 3, "failed": 0}))
    assert evidence.judged(wanted, [file])[1] == []


def test_a_project_without_checks_may_have_its_tests_run_there(tmp_path: Path) -> None:
    spec = Spec("of nothing", frozenset())
    seen = proof(spec="of nothing", checks={}, tests={**TESTS, "passed": 3, "failed": 0})
    file = write(tmp_path / "x.json", seen)
    wanted = dataclasses.replace(WANTED, spec=spec)
    assert evidence.judged(wanted, [file])[1] == ["x.json has no check on a GPU at all"]
    assert evidence.judged(dataclasses.replace(wanted, tests=TESTS), [file])[1] == []


def test_evidence_of_other_bytes_is_left_alone(tmp_path: Path) -> None:
    file = write(tmp_path / "x.json", proof(sha256="def"))
    assert evidence.judged(WANTED, [file]) == ([], [])


def test_an_edited_file_is_no_evidence(tmp_path: Path) -> None:
    """A finding was removed, and the digest left as it was."""
    failed = proof(failures=["add float32 cuda: wrong"], passed=False)
    file = write(tmp_path / "x.json", failed | {"failures": [], "passed": True})
    assert evidence.judged(WANTED, [file])[1] == ["x.json was edited after it was made"]


@pytest.mark.parametrize("text", ["", "[]", "null", "{", "[" * 100_000])
def test_a_file_that_a_full_disk_left_is_no_evidence(tmp_path: Path, text: str) -> None:
    file = tmp_path / "torn.json"
    file.write_text(text)
    found, (line,) = evidence.judged(WANTED, [file])
    assert found == []
    assert line.startswith("torn.json ")


def test_a_command_counts_where_the_matrix_has_one(tmp_path: Path) -> None:
    told = dataclasses.replace(WANTED, command="demo --check", spec=Spec("a spec", frozenset()))
    file = write(tmp_path / "x.json", proof(command="demo --check", checks={}))
    assert evidence.judged(told, [file])[0]
    assert evidence.judged(WANTED, [file])[1] == ["x.json was made with another smoke command"]


def test_two_machines_are_two_proofs_and_a_copy_is_none(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("a.json", "b.json", "c.json")]
    for file, torch in zip(files, ("2.11.0", "2.15.0", "2.15.0"), strict=True):
        write(file, proof(torch=torch))
    assert [seen["torch"] for seen in evidence.judged(WANTED, files)[0]] == ["2.11.0", "2.15.0"]


def test_a_free_threaded_python_is_not_its_twin_with_a_gil() -> None:
    assert evidence.cell(proof(python="3.14.1t")) == ("x86_64", "2.11", "3.14t", "13.0")
    assert evidence.cell(proof(python="3.14.1")) == ("x86_64", "2.11", "3.14", "13.0")


def test_the_spec_is_what_the_smoke_tests_of_the_release_have_checked(tmp_path: Path) -> None:
    one, other = (write(tmp_path / f"{name}.json", proof(gpu=None)) for name in ("a", "b"))
    assert evidence.spec_of([one, other]) == SPEC
    write(other, proof(gpu=None, spec="another"))
    with pytest.raises(Problem, match=r"a\.json, b\.json were made with different specs"):
        evidence.spec_of([one, other])
    other.write_text("")
    with pytest.raises(Problem, match=r"b\.json is empty or cut off; run it again"):
        evidence.spec_of([one, other])


def test_the_committed_evidence_was_made_by_this_smoke_test() -> None:
    """If smoke.py has changed, a GPU must run the wheel again: RELEASE.md says how."""
    committed = sorted((ROOT / evidence.FOLDER).glob("*.json"))
    if not committed:
        pytest.skip("no GPU has run this project's wheels yet")
    for file in committed:
        seen, problem = evidence.read(file)
        assert problem == "", file.name
        assert seen["program"] == sha256(PROGRAM), file.name


def test_a_run_that_failed_is_not_made_good_by_another(tmp_path: Path) -> None:
    good = write(tmp_path / "good.json", proof())
    bad = write(tmp_path / "bad.json", proof(passed=False, failures=["add float32 cuda: wrong"]))
    assert evidence.judged(WANTED, [good, bad]) == ([], ["bad.json says that checks failed"])


def test_evidence_is_of_the_wheels_own_architecture_and_torch(tmp_path: Path) -> None:
    name = "demo_ext-1.0+cu130torch2.15-cp311-cp311-manylinux_2_28_x86_64.whl"
    inputs = {"program": sha256(PROGRAM), "smoke": {"command": None}}
    wanted = evidence.wanted(inputs, TORCHES, name, "abc", SPEC)
    for machine, torch, reason in (
        ("x86_64", "2.15.1+cu130", ""),
        ("riscv64", "2.15.1", "was made on riscv64"),
        ("x86_64", "2.11.0", "was made with torch 2.11.0, which the matrix does not have"),
    ):
        seen = proof(wheel=name, machine=machine, torch=torch)
        file = write(tmp_path / "x.json", seen)
        assert evidence.judged(wanted, [file])[1] == [f"x.json {reason}"] * bool(reason)

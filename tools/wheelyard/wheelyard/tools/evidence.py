"""Reads and checks GPU evidence: what is known of a wheel from running it on a GPU machine.

That machine is either another job, which hands its evidence on, or one that a person used, whose evidence is committed
in docs/evidence. Evidence counts for exactly the bytes that it names, if the smoke test of this release made it from
that wheel, on its architecture, beside a torch of the matrix, loaded nothing else in its place, and checked every op
and dtype on a GPU. Anything else does not count, and the reason is reported; no other run makes up for a failed one.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wheelyard.core import digest, shell
from wheelyard.problem import Problem

FOLDER = "docs/evidence"
SCHEMA = 4
SEAL = "digest"  # the key of the digest of everything else in the evidence
TEXTS = ("wheel", "machine", "python", "torch")


def capabilities() -> list[str]:
    """Returns the compute capability of each GPU of this machine, from its driver."""
    said = shell.capture(["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"])
    return re.findall(r"^\d+\.\d+$", said or "", re.MULTILINE)


@dataclass(frozen=True)
class Spec:
    """The checks of a release's smoke test, as its runs here have recorded them."""

    digest: str
    checks: frozenset[tuple[str, str]]  # op and dtype


@dataclass(frozen=True)
class Wanted:
    """The requirements on evidence for one wheel."""

    wheel: str  # its sha256
    program: str  # the sha256 of the smoke test's program
    command: str | None
    spec: Spec | None  # None: nothing has been smoke-tested here
    file: str  # the wheel's name, which ends in its architecture
    torches: tuple[str, ...]  # those that it may be run beside, such as 2.15
    # Tests that must have been run too: their command and the digest of their files.
    tests: Mapping[str, Any] | None = None


def wanted(
    inputs: Mapping[str, Any], torches: Iterable[str], file: str, wheel: str, spec: Spec | None
) -> Wanted:
    """Returns the requirements on evidence about the wheel of this name and sha256. `inputs` are the settings of the
    smoke test, `torches` those of the matrix."""
    own = file.split("-")[1].partition("torch")[2]  # empty unless the wheel is for one torch
    beside = (own,) if own else tuple(torches)
    tests, command = inputs.get("gpu_tests"), inputs["smoke"]["command"]
    return Wanted(wheel, inputs["program"], command, spec, file, beside, tests)


def spec_of(files: Iterable[Path]) -> Spec | None:
    """Returns the checks of this release's smoke tests, which must all be the same."""
    found = {file.name: _spec(file) for file in files}
    if len(set(found.values())) > 1:
        raise Problem(
            f"{', '.join(found)} were made with different specs; run the smoke test again"
        )
    return next(iter(found.values()), None)


def _spec(file: Path) -> Spec:
    seen, problem = read(file)
    if problem:
        raise Problem(f"the smoke test's {file.name} {problem}; run it again")
    return Spec(seen["spec"], frozenset(_op_and_dtype(key) for key in seen["checks"]))


def judged(wanted: Wanted, files: Iterable[Path]) -> tuple[list[dict[str, Any]], list[str]]:
    """Returns the evidence that a wheel passed on a GPU, without duplicates, and a line for each file about these bytes
    that says why it is no evidence; files about others are left out."""
    found: dict[str, dict[str, Any]] = {}
    refused = []
    failed = False
    for file in sorted(files):
        seen, problem = read(file)
        is_ours = seen.get("sha256") == wanted.wheel
        failed = failed or (is_ours and _has_failed(seen))
        problem = problem or (_lacks(seen, wanted) if is_ours else "")
        if problem and (is_ours or "sha256" not in seen):
            refused.append(f"{file.name} {problem}")
        elif is_ours:
            found[json.dumps(seen, sort_keys=True)] = {"file": file.name, **seen}
    return [] if failed else list(found.values()), refused


def read(file: Path) -> tuple[dict[str, Any], str]:
    """Returns the contents of a file, and what is wrong with its form, as somebody else wrote it."""
    try:
        seen = json.loads(file.read_text())
    except (ValueError, RecursionError):  # such as an empty one, which a full disk left
        return {}, "is empty or cut off"
    if not isinstance(seen, dict):
        return {}, "has no evidence in it"
    if seen.get("schema_version") != SCHEMA:
        return seen, f"was made by an older smoke test (schema {seen.get('schema_version')})"
    if seen.get(SEAL) != seal(seen):
        return seen, "was edited after it was made"
    checks = seen.get("checks")
    texts = all(isinstance(seen.get(key), str) for key in TEXTS)
    runs = seen.get("runs")
    if not (isinstance(checks, dict) and texts and isinstance(runs, list) and runs):
        return seen, "lacks what a smoke test writes"
    return seen, ""


def seal(seen: dict[str, Any]) -> str:
    """Returns the digest of everything else in a piece of evidence, as the smoke test makes it."""
    return digest.of({key: value for key, value in seen.items() if key != SEAL})


def _lacks(seen: dict[str, Any], wanted: Wanted) -> str:
    """Returns why evidence about the right wheel does not count; empty if it does."""
    if not seen.get("gpu"):
        return "was made without a GPU"
    if _has_failed(seen):
        return "says that checks failed"
    if seen["wheel"] != wanted.file:
        return f"is about a file named {seen['wheel']}"
    if not wanted.file.endswith(("_" + seen["machine"] + ".whl", "-any.whl")):
        return f"was made on {seen['machine']}"
    if seen.get("installed") is not False or not seen.get("loaded"):
        return "was not made from the wheel itself"
    if cell(seen)[1] not in wanted.torches:
        return f"was made with torch {seen['torch']}, which the matrix does not have"
    if seen.get("program") != wanted.program:
        return "was made by another version of smoke.py"
    if (seen.get("command") or "") != (wanted.command or ""):
        return "was made with another smoke command"
    if wanted.spec and seen.get("spec") != wanted.spec.digest:
        return "was made with other checks than this release has"
    tests = seen.get("tests")
    ran = (
        isinstance(tests, dict)
        and tests.get("passed")
        and (wanted.tests or {}).items() <= tests.items()
    )
    if wanted.tests and not ran:
        return "has no run of this release's tests"
    there = {
        _op_and_dtype(key)
        for key, count in seen["checks"].items()
        if key.split()[2:3] == ["cuda"] and isinstance(count, int) and count > 0
    }
    missing = sorted((wanted.spec.checks if wanted.spec else set()) - there)
    if missing:
        return f"has no check on a GPU of {', '.join(' '.join(pair) for pair in missing)}"
    return "" if there or seen.get("command") or wanted.tests else "has no check on a GPU at all"


def _has_failed(seen: dict[str, Any]) -> bool:
    """Whether this run or an earlier one of the same wheel failed."""
    runs = seen.get("runs") if isinstance(seen.get("runs"), list) else []
    every = [seen, *(run for run in runs or [] if isinstance(run, dict))]
    return any(run.get("passed") is not True or run.get("failures") for run in every)


def _op_and_dtype(key: str) -> tuple[str, str]:
    """Returns the op and dtype of a check: my_add float32 cuda graph -> my_add, float32"""
    op, dtype, *_ = [*key.split(), "", ""]
    return op, dtype


def checks(evidence: dict[str, Any]) -> int:
    """Returns how many checks passed; a command that succeeded counts as one."""
    return int(sum(evidence["checks"].values())) + bool(evidence.get("command"))


def cell(evidence: dict[str, Any]) -> tuple[str, ...]:
    """Returns the architecture, torch, Python and CUDA of a run. A free-threaded Python differs from the same version
    with a GIL."""
    python = evidence["python"]
    minor = ".".join(python.rstrip("t").split(".")[:2]) + ("t" if python.endswith("t") else "")
    return (
        evidence["machine"],
        ".".join(evidence["torch"].split(".")[:2]),
        minor,
        str(evidence.get("torch_cuda")),
    )

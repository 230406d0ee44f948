"""What is known of a wheel from running it on a GPU machine.

That machine is another job, which hands its evidence on, or one that a person used; that evidence is committed in
docs/evidence. Evidence counts for the very bytes that it names, if it was made by the smoke test of this release, and
if on a GPU something was checked of every op and dtype. Anything else is no evidence, and is said to be none.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wheelyard.core import digest
from wheelyard.problem import Problem

FOLDER = "docs/evidence"
SCHEMA = 3
SEAL = "digest"  # of all else that a piece of evidence says
TEXTS = ("wheel", "machine", "python", "torch")


@dataclass(frozen=True)
class Spec:
    """What the smoke test of a release checks, as the smoke test of its wheels here has seen it."""

    digest: str
    checks: frozenset[tuple[str, str]]  # op and dtype


@dataclass(frozen=True)
class Wanted:
    """What evidence for one wheel must be about."""

    wheel: str  # its sha256
    program: str  # the sha256 of the smoke test
    command: str | None
    spec: Spec | None  # None: nothing has been smoke-tested here


def wanted(inputs: Mapping[str, Any], wheel: str, spec: Spec | None) -> Wanted:
    """What evidence about the wheel with this sha256 must be; `inputs` are what the smoke test is told."""
    return Wanted(wheel, inputs["program"], inputs["smoke"]["command"], spec)


def spec_of(files: Iterable[Path]) -> Spec | None:
    """What the smoke tests of this release have checked; all of them the same."""
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


def on_gpu(wanted: Wanted, files: Iterable[Path]) -> list[dict[str, Any]]:
    """The evidence that a wheel passed on a GPU, each once."""
    return _judged(wanted, files)[0]


def why_none(wanted: Wanted, files: Iterable[Path]) -> list[str]:
    """Why the files about these bytes are no evidence, a line for each; files about others are left alone."""
    return _judged(wanted, files)[1]


def _judged(wanted: Wanted, files: Iterable[Path]) -> tuple[list[dict[str, Any]], list[str]]:
    found: dict[str, dict[str, Any]] = {}
    refused = []
    for file in sorted(files):
        seen, problem = read(file)
        is_ours = seen.get("sha256") == wanted.wheel
        problem = problem or (_lacks(seen, wanted) if is_ours else "")
        if problem and (is_ours or "sha256" not in seen):
            refused.append(f"{file.name} {problem}")
        elif is_ours:
            found[json.dumps(seen, sort_keys=True)] = {"file": file.name, **seen}
    return list(found.values()), refused


def read(file: Path) -> tuple[dict[str, Any], str]:
    """What a file says, and what is wrong with its form; somebody else wrote it."""
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
    if not isinstance(checks, dict) or not all(isinstance(seen.get(key), str) for key in TEXTS):
        return seen, "lacks what a smoke test writes"
    return seen, ""


def seal(seen: dict[str, Any]) -> str:
    """The digest of all that a piece of evidence says, as the smoke test makes it."""
    return digest.of({key: value for key, value in seen.items() if key != SEAL})


def _lacks(seen: dict[str, Any], wanted: Wanted) -> str:
    """Why evidence about the right wheel does not count; empty if it does."""
    if not seen.get("gpu"):
        return "was made without a GPU"
    if seen.get("passed") is not True or seen.get("failures"):
        return "says that checks failed"
    if seen.get("program") != wanted.program:
        return "was made by another version of smoke.py"
    if (seen.get("command") or "") != (wanted.command or ""):
        return "was made with another smoke command"
    if wanted.spec and seen.get("spec") != wanted.spec.digest:
        return "was made with other checks than this release has"
    there = {_op_and_dtype(key) for key, count in seen["checks"].items() if _is_on_gpu(key, count)}
    missing = sorted((wanted.spec.checks if wanted.spec else set()) - there)
    if missing:
        return f"has no check on a GPU of {', '.join(' '.join(pair) for pair in missing)}"
    return "" if there or seen.get("command") else "has not one check on a GPU"


def _op_and_dtype(key: str) -> tuple[str, str]:
    """my_add float32 cuda graph -> my_add, float32"""
    op, dtype, *_ = [*key.split(), "", ""]
    return op, dtype


def _is_on_gpu(key: str, count: Any) -> bool:
    return key.split()[2:3] == ["cuda"] and isinstance(count, int) and count > 0


def checks(evidence: dict[str, Any]) -> int:
    """How many checks passed; a command that succeeded is one."""
    return int(sum(evidence["checks"].values())) + bool(evidence.get("command"))


def cell(evidence: dict[str, Any]) -> tuple[str, ...]:
    """Architecture, torch, Python and CUDA that were there; a free-threaded Python is not its twin with a GIL."""
    python = evidence["python"]
    minor = ".".join(python.rstrip("t").split(".")[:2]) + ("t" if python.endswith("t") else "")
    return (
        evidence["machine"],
        ".".join(evidence["torch"].split(".")[:2]),
        minor,
        str(evidence.get("torch_cuda")),
    )

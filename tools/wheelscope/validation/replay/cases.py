"""The cases: recorded/cases.toml, and the public reports that `wheelscope explain` is tested with."""

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from validation.containers import SUITES, Suite

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(__file__).with_name("recorded")
CASES = FOLDER / "cases.toml"
REPORTS = ROOT / "tests/reports.toml"


@dataclass(frozen=True)
class Environment:
    """The environment of a case: a suite's Python with the packages installed first, or the machine
    of a report."""

    name: str
    python: str
    glibc: str
    suite: Suite | None  # None: known only from a report
    requirements: tuple[str, ...]
    torch: dict[str, str]  # version, and cuda if it is built for one; empty: no torch
    driver: str | None
    gpu: dict[str, str] | None  # name, capability


@dataclass(frozen=True)
class Case:
    """A wheel that is unpacked into an environment, and then imported."""

    kind: str  # the list that it belongs to
    wheel: str  # NAME==VERSION, or a file's name
    environment: str
    module: str
    report: str | None  # a public report of the same failure; None if it works
    python: str | None  # of the wheel's tag, if it differs
    word: str | None  # Python's message, if the import failed here
    message: str | None  # the report's, if not reproducible here; neither: it works

    @property
    def project(self) -> str:
        """NAME==VERSION"""
        if not self.wheel.endswith(".whl"):
            return self.wheel
        name, version, *_ = self.wheel.split("-")
        return f"{name}=={version}"

    @property
    def happened(self) -> str:
        return "fails" if self.word else "reported" if self.message else "works"


def load_environments() -> dict[str, Environment]:
    document = tomllib.loads((FOLDER / "environments.toml").read_text())
    return {name: _environment(name, facts) for name, facts in document.items()}


def _environment(name: str, facts: dict[str, Any]) -> Environment:
    suite = SUITES[facts["suite"]] if "suite" in facts else None
    return Environment(
        name=name,
        python=suite.python if suite else facts["python"],
        glibc=suite.glibc if suite else facts["glibc"],
        suite=suite,
        requirements=tuple(facts.get("requirements", ())),
        torch=facts.get("torch", {}),
        driver=facts.get("driver"),
        gpu=facts.get("gpu"),
    )


def load_cases() -> list[Case]:
    optional = dict.fromkeys(("report", "python", "word", "message"))
    return [
        Case(kind=kind, **{**optional, **one})
        for kind, cases in tomllib.loads(CASES.read_text()).items()
        for one in cases
    ]


def write_rows(path: Path, key: str, rows: list[dict[str, Any]]) -> None:
    """Replaces one list of a file with new rows, one line each, without keys that have no value."""
    head, _, rest = path.read_text().partition(f"\n{key} = [\n")
    lines = (
        ", ".join(f"{name} = {json.dumps(value)}" for name, value in row.items() if value)
        for row in rows
    )
    written = "".join(f"  {{ {line} }},\n" for line in lines)
    path.write_text(f"{head}\n{key} = [\n{written}]\n{rest.partition(chr(10) + ']' + chr(10))[2]}")


def load_reports() -> list[dict[str, Any]]:
    reports: list[dict[str, Any]] = tomllib.loads(REPORTS.read_text())["report"]
    return reports

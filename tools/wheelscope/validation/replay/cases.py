"""The cases: recorded/*.toml, and the public reports that `wheelscope explain` is tested with."""

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from validation.containers import SUITES, Suite

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(__file__).with_name("recorded")
REPORTS = ROOT / "tests/reports.toml"


@dataclass(frozen=True)
class Environment:
    """What a case runs in: a suite's Python with what is installed before, or the machine of a report."""

    name: str
    python: str
    glibc: str
    suite: Suite | None  # None: it is known by a report alone
    requirements: tuple[str, ...]
    torch: dict[str, str]  # version, and cuda where it is built for one; empty: no torch
    driver: str | None
    gpu: dict[str, str] | None  # name, capability


@dataclass(frozen=True)
class Case:
    """A wheel that is put into an environment as it is, and then imported."""

    kind: str  # the file that it stands in
    wheel: str  # NAME==VERSION, or a file's name
    environment: str
    module: str
    report: str | None  # a public one of the same failure; none for what works
    python: str | None  # of the wheel's tag, where it is another one
    word: str | None  # Python's, where the import failed here
    message: str | None  # the report's, where it cannot be made to fail here; neither: it works

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
    cases = []
    for path in sorted(FOLDER.glob("*.toml")):
        if path.name == "environments.toml":
            continue
        for one in tomllib.loads(path.read_text())["case"]:
            optional = {key: one.get(key) for key in ("report", "python", "word", "message")}
            cases.append(
                Case(
                    kind=path.stem,
                    wheel=one["wheel"],
                    environment=one["environment"],
                    module=one["module"],
                    **optional,
                )
            )
    return cases


def write_rows(path: Path, key: str, rows: list[dict[str, Any]]) -> None:
    """Writes what was asked as one line per row, below the file's comment; keys without a value are left out."""
    head = path.read_text().partition(f"{key} = [")[0]
    lines = (
        ", ".join(f"{name} = {json.dumps(value)}" for name, value in row.items() if value)
        for row in rows
    )
    path.write_text(f"{head}{key} = [\n" + "".join(f"  {{ {line} }},\n" for line in lines) + "]\n")


def load_reports() -> list[dict[str, Any]]:
    reports: list[dict[str, Any]] = tomllib.loads(REPORTS.read_text())["report"]
    return reports

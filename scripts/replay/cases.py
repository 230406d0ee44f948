"""The cases: tests/replay/*.toml, and the public reports that `wheelscope explain` is tested with."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tests/replay"
REPORTS = ROOT / "tests/wheelscope/reports.toml"


@dataclass(frozen=True)
class Environment:
    """What a case runs in: a Python of this kind of machine, and what is installed before."""

    name: str
    python: str
    glibc: str
    requirements: tuple[str, ...]
    torch: dict[str, str]  # version, and cuda where it is built for one; empty: no torch


@dataclass(frozen=True)
class Case:
    """A wheel that is put into an environment as it is, and then imported."""

    kind: str  # the file that it stands in
    wheel: str  # NAME==VERSION
    environment: str
    module: str
    report: str | None  # a public one of the same failure; none for what works
    python: str | None  # of the wheel's tag, where it is another one
    word: str | None  # Python's, where the import failed here; None: it works


def load_environments() -> dict[str, Environment]:
    document = tomllib.loads((FOLDER / "environments.toml").read_text())
    return {
        name: Environment(
            name, facts["python"], facts["glibc"], tuple(facts["requirements"]), facts.get("torch", {})
        )
        for name, facts in document.items()
    }  # fmt: skip


def load_cases() -> list[Case]:
    cases = []
    for path in sorted(FOLDER.glob("*.toml")):
        if path.name == "environments.toml":
            continue
        for one in tomllib.loads(path.read_text())["case"]:
            optional = {key: one.get(key) for key in ("report", "python", "word")}
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


def load_reports() -> list[dict[str, Any]]:
    reports: list[dict[str, Any]] = tomllib.loads(REPORTS.read_text())["report"]
    return reports

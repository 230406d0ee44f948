"""Tests which digests the workflows' jobs are given: each file's come from the job that made it, and from no other.

The rehearsal goes through the workflows' own lines, and runs none of them.
"""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from rehearsal import Rehearsal, workflows_of_init
from repository import ROOT
from wheelyard.plan import github
from wheelyard.plan import plan as planning
from wheelyard.plan.plan import Options

OURS = ROOT
EACH = Path(__file__).with_name("ordinary")  # has several wheels per architecture


@dataclass
class Dry(Rehearsal):
    """A rehearsal that records each line of each job with its variables; a job that outputs digests outputs its own
    name."""

    project: Path = OURS
    lines: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)

    def clone(self, *, whole: bool = False) -> Path:  # noqa: ARG002
        (self.folder / "clone").mkdir(exist_ok=True)
        return self.folder / "clone"

    def run_line(
        self, name: str, _: Path, line: str, given: dict[str, str], __: float
    ) -> dict[str, str]:
        self.lines.append((name, line, given))
        if "wheelyard plan" in line:
            plan = planning.load(Options(base="debian"), self.project)
            return {"jobs": json.dumps(github.matrices(plan))}
        return (
            {"digests": f"of {name} {given.get('WHEEL', '')}".strip()} if "digests" in line else {}
        )

    def upload(self, name: str, _: Path, artifact: str, __: str) -> None:
        (self.artifacts / artifact).mkdir(parents=True, exist_ok=True)
        self.uploaders[artifact] = name

    def joins(self) -> dict[str, list[dict[str, str]]]:
        """Returns the options of each job that takes over artifacts, with their values."""
        found: dict[str, list[dict[str, str]]] = {}
        for name, line, given in self.lines:
            if "wheelyard join" in line:
                words = re.findall(r'--((?:all-)?made \w+)="\$(\w+)"', line)
                found.setdefault(name, []).append({f"{o} {w}": given[w] for o, w in words})
        return found


@pytest.fixture(autouse=True)
def every_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")


def test_our_release(tmp_path: Path) -> None:
    dry = Dry(OURS, "v1", tmp_path, {})
    dry.run()
    joins = dry.joins()
    assert joins.pop("build") == [{"all-made plan DIGESTS": "of plan"}] * 2
    assert joins.pop("gate") == [
        {
            "made plan SDIST": "of plan",
            "made build X86_64": "of build x86_64",
            "made build AARCH64": "of build aarch64",
        }
    ]
    inner = {"all-made gate DIGESTS": "of gate"}
    for name in ("verify", "smoke", "index"):
        assert set(map(str, joins.pop(name))) == {str(inner)}
    for name in ("gpu", "sign", "testpypi", "install", "pypi", "github"):
        assert joins.pop(name) == [{"all-made wheels DIGESTS": "of gate"}]
    assert joins == {}


def test_the_release_of_another_project(tmp_path: Path) -> None:
    """This is the workflow that `init` writes. With several wheels per architecture, only the last one's digest reaches
    the gate."""
    dry = Dry(EACH, "v1", tmp_path, {}, workflows_of_init(tmp_path), project=EACH)
    dry.run()
    joins = dry.joins()
    last = [
        given["WHEEL"]
        for name, _, given in dry.lines
        if name == "build" and "x86" in given["WHEEL"]
    ][-1]
    assert joins["gate"][0]["made build X86_64"] == f"of build {last}"
    assert joins["page"] == [{"all-made wheels DIGESTS": "of gate"}]

"""Defines what the pipeline's tests share: the plan of this project in a release folder of its own, and real
indexes."""

from collections.abc import Callable, Iterator
from pathlib import Path

import devpi
import pytest
from rehearsal import PUBLIC
from repository import ROOT
from wheelyard.core.record import Record
from wheelyard.plan import plan as planning
from wheelyard.plan.plan import Options, Plan
from wheelyard.tools.index import Index

collect_ignore = ["demo", "ordinary"]  # other projects, with tests of their own


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plan:
    """Returns the plan of this repository, with an empty release folder."""
    monkeypatch.setenv("RELEASE_FOLDER", str(tmp_path / "release"))
    return planning.load(Options(), ROOT)


@pytest.fixture
def record(plan: Plan) -> Record:
    plan.project.release_folder.mkdir()
    return Record(plan.project.release_folder)


@pytest.fixture(scope="session")
def new_index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Index]]:
    """Yields a function that makes an empty index of a given name in a real devpi."""
    with devpi.running(tmp_path_factory.mktemp("devpi")) as make:
        yield make


@pytest.fixture(scope="session")
def indexes(new_index: Callable[[str], Index]) -> list[Index]:
    return [new_index(name) for name in PUBLIC]

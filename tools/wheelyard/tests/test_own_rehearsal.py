"""Rehearses the release workflow on this very repository, from `make tag` to its last job."""

import os
import subprocess
from pathlib import Path

import pytest
from rehearsal import Rehearsal, check_published, run_whole, stand_ins
from repository import ROOT, git
from wheelyard.plan import project
from wheelyard.tools.index import Index

pytestmark = pytest.mark.skipif(
    "RELEASE_TESTS" not in os.environ,
    reason="half an hour of real builds; `make rehearsal` runs it",
)
FACTS = project.load(ROOT)
_major, _minor, _patch = FACTS.version.split(".")
NEXT = f"{_major}.{int(_minor) + 1}.0"


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Makes a clone of HEAD that someone releases as its next version."""
    folder = tmp_path_factory.mktemp("origin") / "project"
    git(ROOT, "clone", "--no-tags", str(ROOT), str(folder))
    git(folder, "config", "user.name", "test")
    git(folder, "config", "user.email", "test@localhost")
    subprocess.run(["make", "tag", f"VERSION={NEXT}"], cwd=folder, check=True)
    return folder


@pytest.fixture(scope="module")
def rehearsal(
    origin: Path, indexes: list[Index], tmp_path_factory: pytest.TempPathFactory
) -> Rehearsal:
    """Runs the whole workflow of the tagged commit once; prints how long each job took."""
    folder = tmp_path_factory.mktemp("rehearsal")
    made = Rehearsal(
        origin, f"v{NEXT}", folder, stand_ins(folder, indexes), origin / ".github/workflows"
    )
    try:
        return run_whole(made)
    finally:
        for title, seconds in made.seconds.items():
            print(f"| {title} | {seconds:.0f} s |")


def test_it_is_published_once(rehearsal: Rehearsal, indexes: list[Index]) -> None:
    check_published(rehearsal, indexes, FACTS.name)

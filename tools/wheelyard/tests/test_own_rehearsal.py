"""The release workflow, rehearsed on this very repository, from `make tag` to its last job."""

import os
import subprocess
from pathlib import Path

import pytest
from rehearsal import Failed, Rehearsal, jobs
from rehearsed import PUBLIC, stand_ins
from repository import ROOT, git
from wheelyard.core.digest import sha256
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
    """A clone of HEAD that someone releases as its next version."""
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
    """The whole workflow of the tagged commit, run once; prints how long each job took."""
    folder = tmp_path_factory.mktemp("rehearsal")
    made = Rehearsal(
        origin,
        f"v{NEXT}",
        folder,
        stand_ins(folder, indexes),
        origin / ".github/workflows",
    )
    try:
        made.run()
    except Failed as failed:
        pytest.fail(str(failed))
    finally:
        for title, seconds in made.seconds.items():
            print(f"| {title} | {seconds:.0f} s |")
    return made


def test_every_job_ran(rehearsal: Rehearsal, origin: Path) -> None:
    run = [
        name for name in jobs(origin / ".github/workflows") if name != "dry-run"
    ]  # no tag runs that
    assert list(rehearsal.printed) == run


def test_it_publishes_to_both_indexes(rehearsal: Rehearsal, indexes: list[Index]) -> None:
    handed = rehearsal.artifacts
    files = [*handed.glob("build-*/*.whl"), *handed.glob("sdist/*.tar.gz")]
    assert len(files) == 3
    for where in indexes:
        assert where.files(FACTS.name) == {file.name: sha256(file) for file in files}


def test_the_release_page_has_everything(rehearsal: Rehearsal) -> None:
    names = [file.name for file in (rehearsal.folder / "github").iterdir()]
    for wanted in ("SHA256SUMS", "report.html", "release.json", "gpu-x86_64.json"):
        assert wanted in names
    assert len([name for name in names if name.endswith((".whl", ".cyclonedx.json"))]) == 4


def test_a_second_run_uploads_nothing(rehearsal: Rehearsal) -> None:
    rehearsal.run("testpypi")
    for job in PUBLIC:
        assert "0 files uploaded, 3 already there" in rehearsal.printed[job]
    assert "is public already, with the same checksums" in rehearsal.printed["github"]

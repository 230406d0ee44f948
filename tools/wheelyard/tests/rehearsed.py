"""The demo project's release workflow, rehearsed once for all tests that look at it or do harm to a copy of it."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from demo_project import copy_of_demo
from rehearsal import Failed, Rehearsal, use_tools_of
from repository import ROOT, git
from wheelyard.tools import index
from wheelyard.tools.index import Index

PUBLIC = ("testpypi", "pypi")  # the indexes, and the jobs that publish to them


def stand_ins(folder: Path, indexes: list[Index]) -> dict[str, str]:
    """Has the pipeline use these indexes in place of the public ones, a folder as GitHub."""
    return {
        "GH_FOLDER": str(folder / "github"),
        "TWINE_USERNAME": index.USER,
        "TWINE_PASSWORD": indexes[0].password or "",
        **{f"INDEX_{n.upper()}": i.upload for n, i in zip(PUBLIC, indexes, strict=True)},
    }


def run_whole(made: Rehearsal) -> Rehearsal:
    """Every job, with this checkout's tools."""
    use_tools_of(ROOT, made)
    try:
        made.run()
    except Failed as failed:
        pytest.fail(str(failed))
    return made


@pytest.fixture(scope="session")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo project with a changelog, tagged by the program behind `make tag`."""
    folder = copy_of_demo(tmp_path_factory.mktemp("origin") / "project")
    (folder / "CHANGELOG.md").write_text("# Changelog\n\n## [Unreleased]\n\n- All of it.\n")
    matrix = folder / "ci/matrix.toml"
    matrix.write_text(matrix.read_text().replace("gpu_evidence = []", 'gpu_evidence = ["x86_64"]'))
    with (folder / ".gitignore").open("a") as ignored:
        ignored.write("/.venv\n")
    git(folder, "config", "user.name", "test")
    git(folder, "config", "user.email", "test@localhost")
    git(folder, "add", "--all")
    git(folder, "commit", "--message", "Add a changelog")
    subprocess.run([sys.executable, "-m", "wheelyard", "tag", "1.1.0"], cwd=folder, check=True)
    return folder


@pytest.fixture(scope="session")
def indexes(new_index: Callable[[str], Index]) -> list[Index]:
    return [new_index(name) for name in PUBLIC]


@pytest.fixture(scope="session")
def rehearsal(
    origin: Path, indexes: list[Index], tmp_path_factory: pytest.TempPathFactory
) -> Rehearsal:
    """The whole workflow, run once."""
    folder = tmp_path_factory.mktemp("rehearsal")
    return run_whole(Rehearsal(origin, "v1.1.0", folder, stand_ins(folder, indexes)))

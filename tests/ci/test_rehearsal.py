"""The release workflow, rehearsed: each job in a clean clone, a real index for both public ones."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from rehearsal import Failed, Rehearsal, jobs, use_tools_of
from test_demo_release import copy_of_demo

from ci import index
from ci.index import Index
from ci.project import ROOT

pytestmark = pytest.mark.skipif(
    "RELEASE_TESTS" not in os.environ,
    reason="minutes of real container builds; `make test-release` runs them",
)
PUBLIC = ("testpypi", "pypi")  # the indexes, and the jobs that publish to them


def git(folder: Path, *words: str) -> str:
    who = ["-c", "user.name=test", "-c", "user.email=test@localhost"]
    command = ["git", *who, *words]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def stand_ins(folder: Path, indexes: list[Index]) -> dict[str, str]:
    """Has the pipeline use these indexes in the place of the public ones, a folder as GitHub."""
    return {
        "GH_FOLDER": str(folder / "github"),
        "TWINE_USERNAME": index.USER,
        "TWINE_PASSWORD": indexes[0].password or "",
        **{f"INDEX_{n.upper()}": i.upload for n, i in zip(PUBLIC, indexes, strict=True)},
    }


@pytest.fixture(scope="module")
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
    subprocess.run([sys.executable, "-m", "ci.tag", "1.1.0"], cwd=folder, check=True)
    return folder


@pytest.fixture(scope="module")
def indexes(new_index: Callable[[str], Index]) -> list[Index]:
    return [new_index(name) for name in PUBLIC]


@pytest.fixture(scope="module")
def rehearsal(
    origin: Path, indexes: list[Index], tmp_path_factory: pytest.TempPathFactory
) -> Rehearsal:
    """The whole workflow, run once."""
    folder = tmp_path_factory.mktemp("rehearsal")
    made = Rehearsal(origin, "v1.1.0", folder, stand_ins(folder, indexes))
    use_tools_of(ROOT, made)
    try:
        made.run()
    except Failed as failed:
        pytest.fail(str(failed))
    return made


def test_it_publishes_to_both_indexes(rehearsal: Rehearsal, indexes: list[Index]) -> None:
    for where in indexes:
        assert len(where.files("demo_ext")) == 3
    assert list(rehearsal.printed) == list(jobs(rehearsal.workflows))


def test_the_release_page_has_everything(rehearsal: Rehearsal) -> None:
    names = [file.name for file in (rehearsal.folder / "github").iterdir()]
    for wanted in ("SHA256SUMS", "report.html", "release.json", "demo_ext-1.1.0.tar.gz"):
        assert wanted in names
    assert len([name for name in names if name.endswith(".whl")]) == 2
    assert len([name for name in names if name.endswith(".cyclonedx.json")]) == 2
    command = ["sha256sum", "--check", "--quiet", "SHA256SUMS"]
    subprocess.run(command, cwd=rehearsal.folder / "github", check=True)


def test_a_second_run_uploads_nothing(rehearsal: Rehearsal) -> None:
    rehearsal.printed.clear()
    rehearsal.run("testpypi")
    assert "0 files uploaded, 3 already there" in rehearsal.printed["testpypi"]
    assert "0 files uploaded, 3 already there" in rehearsal.printed["pypi"]
    assert "0 files added" in rehearsal.printed["github"]


@pytest.fixture
def copy(rehearsal: Rehearsal, tmp_path: Path) -> Rehearsal:
    """The same run with artifacts and origin of its own, to be spoilt."""
    shutil.copytree(rehearsal.artifacts, tmp_path / "artifacts")
    shutil.copytree(rehearsal.origin, tmp_path / "origin")
    return Rehearsal(
        tmp_path / "origin", rehearsal.tag, tmp_path, rehearsal.environment, rehearsal.jobs_json
    )


def test_a_wheel_altered_after_the_smoke_test_stops(copy: Rehearsal) -> None:
    (wheel, *_) = (copy.artifacts / "smoke").glob("*.whl")
    wheel.write_bytes(wheel.read_bytes() + b"\0")
    with pytest.raises(Failed, match="is not what its record says; run that job again") as failed:
        copy.run("testpypi")
    assert failed.value.job == "testpypi"


def test_a_tag_that_disagrees_stops(copy: Rehearsal) -> None:
    git(copy.origin, "tag", "v9.9.9", "v1.1.0^{}")
    git(copy.origin, "tag", "--delete", "v1.1.0")
    copy.tag = "v9.9.9"
    with pytest.raises(
        Failed, match=r"carries v9\.9\.9, but pyproject\.toml says 1\.1\.0"
    ) as failed:
        copy.run()
    assert failed.value.job == "check"
    with pytest.raises(Failed, match=r"make tag VERSION=1\.1\.0"):
        copy.run("testpypi")


def move_tag(copy: Rehearsal) -> None:
    """Commits what changed, and has the tag and the record name that commit."""
    old = head(copy.origin)
    git(copy.origin, "commit", "--all", "--message", "Change something")
    git(copy.origin, "tag", "--force", copy.tag)
    record = copy.artifacts / "smoke/release.json"
    record.write_text(record.read_text().replace(old, head(copy.origin)))


def head(folder: Path) -> str:
    command = ["git", "rev-parse", "HEAD"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True).stdout.strip()


def test_missing_gpu_evidence_stops(copy: Rehearsal) -> None:
    """The wheel needs evidence by the matrix of the tagged commit, and the job handed none on."""
    matrix = copy.origin / "ci/matrix.toml"
    matrix.write_text(matrix.read_text().replace("gpu_evidence = []", 'gpu_evidence = ["x86_64"]'))
    move_tag(copy)
    with pytest.raises(
        Failed, match=r"(?s)no GPU evidence for demo_ext.*on a machine with a GPU run"
    ):
        copy.run("testpypi")


def test_wheels_of_other_sources_stop(copy: Rehearsal) -> None:
    """The tag was moved to a commit whose sources are not those of the wheels."""
    with (copy.origin / "demo_ext/demo.c").open("a") as source:
        source.write("/* changed */\n")
    move_tag(copy)
    with pytest.raises(Failed, match="built from another state of the sources"):
        copy.run("testpypi")


def test_a_dirty_tree_stops(copy: Rehearsal, monkeypatch: pytest.MonkeyPatch) -> None:
    clean = Rehearsal.clone

    def dirty(self: Rehearsal) -> Path:
        clone = clean(self)
        (clone / "stray.txt").touch()
        return clone

    monkeypatch.setattr(Rehearsal, "clone", dirty)
    with pytest.raises(Failed, match="uncommitted changes; commit them, tag, and build again"):
        copy.run("testpypi")


def test_what_an_earlier_job_did_not_hand_on_is_missed(copy: Rehearsal) -> None:
    for wheel in (copy.artifacts / "smoke").glob("*.whl"):
        wheel.unlink()
    with pytest.raises(Failed):
        copy.run("testpypi", "testpypi")


def test_the_workflows_are_those_of_the_repository() -> None:
    assert list(jobs())[-1] == "github"
    assert (ROOT / ".github/workflows/wheels.yml").exists()

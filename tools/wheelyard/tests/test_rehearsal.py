"""Rehearses the release workflow: each job in a clean clone, with a real index for both public ones. Nothing wrong, and
nothing that a compromised job hands on, reaches either."""

import dataclasses
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from demo_project import copy_of_demo
from rehearsal import (
    PUBLIC,
    Failed,
    Rehearsal,
    check_published,
    run_whole,
    stand_ins,
    with_our_tools,
)
from repository import git, real_release
from test_doctor import GitHub, github
from wheelyard.core.digest import sha256
from wheelyard.tools.index import Index

__all__ = ["github"]
pytestmark = real_release()


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Makes the demo project with a changelog, tagged by the program behind `make tag`."""
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


@pytest.fixture(scope="module")
def rehearsal(
    origin: Path, indexes: list[Index], tmp_path_factory: pytest.TempPathFactory
) -> Rehearsal:
    """Runs the whole workflow once."""
    folder = tmp_path_factory.mktemp("rehearsal")
    return run_whole(
        with_our_tools(Rehearsal(origin, "v1.1.0", folder, stand_ins(folder, indexes)))
    )


def test_it_is_published_once(rehearsal: Rehearsal, indexes: list[Index]) -> None:
    check_published(rehearsal, indexes, "demo_ext")


def test_a_file_that_was_cut_off_is_sent_again_before_the_page_is_public(
    rehearsal: Rehearsal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    again = dataclasses.replace(
        rehearsal, environment=rehearsal.environment | {"GH_FOLDER": str(tmp_path / "page")}
    )
    monkeypatch.setenv("GH_CUT_OFF", "report.html release.json")
    with pytest.raises(Failed, match=r"GitHub does not have report\.html, release\.json in full"):
        again.run_job("github")
    assert (tmp_path / "page/.draft").exists()
    monkeypatch.delenv("GH_CUT_OFF")
    again.run_job("github")
    assert not (tmp_path / "page/.draft").exists()
    subprocess.run(
        ["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=tmp_path / "page", check=True
    )


# --- What must stop before anything is uploaded ---------------------------------------------------


@pytest.fixture(scope="module")
def empty(new_index: Callable[[str], Index]) -> list[Index]:
    """Returns two indexes to which nothing may be uploaded."""
    return [new_index(f"empty-{name}") for name in PUBLIC]


def again(rehearsal: Rehearsal, indexes: list[Index], folder: Path) -> Rehearsal:
    """Returns the finished run with artifacts and an origin of its own, as before anything was published."""
    shutil.copytree(rehearsal.artifacts, folder / "artifacts")
    shutil.copytree(rehearsal.origin, folder / "origin")
    shutil.copy(rehearsal.signatures, folder)
    (folder / "made").symlink_to(rehearsal.made)
    return dataclasses.replace(
        rehearsal,
        origin=folder / "origin",
        folder=folder,
        environment=stand_ins(folder, indexes),
        outputs=dict(rehearsal.outputs),
        uploaders=dict(rehearsal.uploaders),
        printed={},
    )


@pytest.fixture
def spoilt(rehearsal: Rehearsal, empty: list[Index], tmp_path: Path) -> Iterator[Rehearsal]:
    """Yields a run to be spoilt, and checks that nothing of it has reached an index."""
    yield again(rehearsal, empty, tmp_path)
    assert [where.files("demo_ext") for where in empty] == [{}, {}]
    assert not (tmp_path / "github").exists()


def stops(run: Rehearsal, message: str, first: str, at: str) -> None:
    """Checks that the run from `first` on fails in the job `at`, with that message."""
    with pytest.raises(Failed, match=f"(?s){message}") as failed:
        run.run(first)
    assert failed.value.job == at


def test_a_dry_run_publishes_to_an_index_of_the_runner_alone(
    spoilt: Rehearsal, github: GitHub
) -> None:
    """It also says what a tag needs: here everything is set up."""
    spoilt.ref_type = "branch"
    spoilt.environment["GITHUB_API_URL"] = f"http://127.0.0.1:{github.server_port}"
    spoilt.run("sign")
    assert list(spoilt.printed) == ["sign", "dry-run"]
    assert "3 files uploaded, 0 already there" in spoilt.printed["dry-run"]
    assert "ok       Actions may run" in spoilt.printed["dry-run"]


def test_files_that_this_workflow_has_not_signed_for_this_tag(spoilt: Rehearsal) -> None:
    signed = spoilt.signatures.read_text()
    for other in ("", signed.replace("release.yml", "ci.yml"), signed.replace("v1.1.0", "v1.0.0")):
        spoilt.signatures.write_text(other)
        stops(
            spoilt,
            "verifying the provenance of demo_ext.*no attestation",
            "testpypi",
            at="testpypi",
        )


def test_a_tag_that_disagrees_with_the_version(spoilt: Rehearsal) -> None:
    git(spoilt.origin, "tag", "v9.9.9", "v1.1.0^{}")
    spoilt.tag = "v9.9.9"
    git(spoilt.origin, "tag", "--delete", "v1.1.0")
    advice = r"carries v9\.9\.9, but pyproject\.toml says 1\.1\.0.*wheelyard tag 1\.1\.0"
    stops(spoilt, advice, "check", at="check")
    stops(spoilt, advice, "testpypi", at="testpypi")


def test_wheels_of_other_sources(spoilt: Rehearsal) -> None:
    """The tag was moved to a commit whose sources are not those of the wheels."""
    with (spoilt.origin / "demo_ext/demo.c").open("a") as source:
        source.write("/* changed */\n")
    old = git(spoilt.origin, "rev-parse", "HEAD")
    git(spoilt.origin, "commit", "--all", "--message", "Change something")
    git(spoilt.origin, "tag", "--force", spoilt.tag)
    stops(spoilt, "was made for commit .* run that job again", "testpypi", at="testpypi")
    for record in spoilt.artifacts.glob("*/release.json"):  # each names the commit
        record.write_text(record.read_text().replace(old, git(spoilt.origin, "rev-parse", "HEAD")))
    stops(spoilt, "built from another state of the sources", "testpypi", at="testpypi")


# --- Compromised jobs -----------------------------------------------------------------------------
#
# A job can leave nothing but artifacts, and every job can replace every artifact. It cannot change what another job has
# told the workflow in its outputs, nor the tree that others check out. What a single artifact, record or file may
# contain is tested in run/test_join.py, core/test_record.py and tools/test_evidence.py.


@contextmanager
def recorded(artifact: Path) -> Iterator[dict[str, Any]]:
    """Yields the jobs in the record of an artifact, to be changed."""
    file = artifact / "release.json"
    content = json.loads(file.read_text())
    yield content["jobs"]
    file.write_text(json.dumps(content))


def leave(artifact: Path, job: str, path: str, data: bytes) -> None:
    """Puts a file into the artifact, with a record that agrees, so that the artifact itself shows nothing wrong."""
    (artifact / path).write_bytes(data)
    fine = {"verdict": "passed", "seconds": 1, "inputs": {}, "outputs": {}, "facts": {}}
    with recorded(artifact) as jobs:
        jobs[job] = jobs.get(job, fine) | {"outputs": {path: sha256(artifact / path)}}


def another(pattern: str, job: str) -> Callable[[Path], None]:
    """Returns an attack that replaces a file by another."""

    def attack(artifacts: Path) -> None:
        (file,) = artifacts.glob(pattern)
        leave(file.parent, job, file.name, file.read_bytes() + b"\0")

    return attack


def another_jobs_wheel(artifacts: Path) -> None:
    leave(artifacts / "gate", "repair/x86_64", "evil-1-py3-none-any.whl", b"evil")


def relabelled(artifacts: Path) -> None:
    """Makes one build job hand on both wheels as its own, so that no evidence is required."""
    (theirs,) = (artifacts / "build-x86_64").glob("*.whl")
    own = artifacts / "build-aarch64"
    with recorded(own) as jobs:
        outputs = jobs["repair/aarch64"]["outputs"]
    leave(own, "repair/aarch64", theirs.name, theirs.read_bytes())
    with recorded(own) as jobs, recorded(artifacts / "build-x86_64") as of_other:
        jobs["repair/aarch64"]["outputs"] |= outputs
        of_other["repair/x86_64"]["outputs"] = {}


def no_verdict(artifacts: Path) -> None:
    with recorded(artifacts / "gate") as jobs:
        del jobs["gate/x86_64"]


def verdicts_of_other_bytes(artifacts: Path) -> None:
    with recorded(artifacts / "gate") as jobs:
        for entry in jobs.values():
            if isinstance(given := entry["inputs"].get("file"), dict):
                entry["inputs"]["file"] = dict.fromkeys(given, "0" * 64)


def every_verdict(artifacts: Path) -> None:
    """Makes one job of verify.yml hand on the verdicts of all others."""
    one, *others = sorted(artifacts.glob("verify-*"))
    with recorded(one) as jobs:
        for other in others:
            with recorded(other) as theirs:
                jobs |= theirs
                theirs.clear()


def on_pypi_already(artifacts: Path) -> None:
    with recorded(artifacts / "testpypi") as jobs:
        jobs["publish/pypi"] = jobs["publish/testpypi"]


# Each attack with the expected message: it names the artifact, and so the job, or the job whose verdict is missing.
ATTACKS: dict[Callable[[Path], None], str] = {
    another("sdist/*.tar.gz", "build/sdist"): "sdist hands on .* but wheels has told",
    another("build-x86_64/*.whl", "repair/x86_64"): "build-x86_64 hands on .* but wheels has told",
    another_jobs_wheel: "gate hands on `repair/x86_64`, which is not its own",
    relabelled: "repair/aarch64 may not leave .*x86_64.whl; it would be repair/x86_64's",
    no_verdict: "`gate/x86_64` has not passed yet",
    verdicts_of_other_bytes: "is not the file that passed `gate/",
    every_verdict: "verify-.* hands on `verify/.*, which is not its own",
    on_pypi_already: "testpypi hands on `publish/pypi`, which is not its own",
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_nothing_of_a_compromised_job_is_published(
    spoilt: Rehearsal, attack: Callable[[Path], None]
) -> None:
    attack(spoilt.artifacts)
    for artifact in spoilt.artifacts.iterdir():
        spoilt.uploaders.setdefault(artifact.name, "verify")
    for job in ["pypi"] if attack is on_pypi_already else ["testpypi", "pypi"]:
        with pytest.raises(Failed, match=f"(?s){ATTACKS[attack]}") as failed:
            spoilt.run_job(job)
        assert "Traceback" not in failed.value.output


def test_without_an_attack_it_would_be_published(
    rehearsal: Rehearsal, new_index: Callable[[str], Index], tmp_path: Path
) -> None:
    """The other tests could not fail if their runs stopped for another reason."""
    open_ones = [new_index(f"open-{name}") for name in PUBLIC]
    run = again(rehearsal, open_ones, tmp_path)
    for job in PUBLIC:
        run.run_job(job)
    published = [where.files("demo_ext") for where in open_ones]
    assert published == [rehearsal.signed, rehearsal.signed], "what was signed where it was made"

"""The release workflow, rehearsed: each job in a clean clone, a real index for both public ones."""

import dataclasses
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from real_releases import real_release
from rehearsal import Failed, Rehearsal, jobs
from rehearsed import PUBLIC, git, stand_ins
from wheelyard.tools.index import Index

pytestmark = real_release()


def test_it_publishes_to_both_indexes(rehearsal: Rehearsal, indexes: list[Index]) -> None:
    for where in indexes:
        assert len(where.files("demo_ext")) == 3
    run = [name for name in jobs(rehearsal.workflows) if name != "dry-run"]  # no tag runs that
    assert list(rehearsal.printed) == run


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
    assert "is public already, with the same checksums" in rehearsal.printed["github"]


def test_a_file_that_was_cut_off_is_sent_again_before_the_page_is_public(
    rehearsal: Rehearsal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    again = dataclasses.replace(
        rehearsal, environment=rehearsal.environment | {"GH_FOLDER": str(tmp_path / "page")}
    )
    monkeypatch.setenv("GH_CUT_OFF", "report.html release.json")
    with pytest.raises(
        Failed, match=r"GitHub does not have report\.html, release\.json as a whole"
    ):
        again.run_job("github")
    assert (tmp_path / "page/.draft").exists()
    monkeypatch.delenv("GH_CUT_OFF")
    again.run_job("github")
    assert not (tmp_path / "page/.draft").exists()
    subprocess.run(
        ["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=tmp_path / "page", check=True
    )


# --- What must stop before anything is uploaded ---------------------------------------------------


@pytest.fixture
def spoilt(
    rehearsal: Rehearsal, new_index: Callable[[str], Index], tmp_path: Path
) -> Iterator[Rehearsal]:
    """The same run with all of its own, to be spoilt; nothing may reach its empty indexes."""
    for name in ("artifacts", "made"):
        shutil.copytree(rehearsal.folder / name, tmp_path / name, symlinks=True)
    shutil.copy(rehearsal.signatures, tmp_path)
    shutil.copytree(rehearsal.origin, tmp_path / "origin")
    shutil.copytree(rehearsal.workflows, tmp_path / "workflows")
    empty = [new_index(f"{tmp_path.name.replace('_', '-')}-{name}") for name in PUBLIC]
    yield dataclasses.replace(
        rehearsal,
        origin=tmp_path / "origin",
        folder=tmp_path,
        environment=stand_ins(tmp_path, empty),
        workflows=tmp_path / "workflows",
        outputs=dict(rehearsal.outputs),
        uploaders=dict(rehearsal.uploaders),
        printed={},
    )
    assert [where.files("demo_ext") for where in empty] == [{}, {}]
    assert not (tmp_path / "github").exists()


def stops(run: Rehearsal, message: str, first: str, at: str) -> None:
    """The run from `first` on goes red in the job `at`, with that message."""
    with pytest.raises(Failed, match=f"(?s){message}") as failed:
        run.run(first)
    assert failed.value.job == at


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


def test_a_dirty_tree(spoilt: Rehearsal, monkeypatch: pytest.MonkeyPatch) -> None:
    clean = Rehearsal.clone

    def dirty(self: Rehearsal, whole: bool) -> Path:
        clone = clean(self, whole=whole)
        (clone / "stray.txt").touch()
        return clone

    monkeypatch.setattr(Rehearsal, "clone", dirty)
    advice = "uncommitted changes; commit them, tag, and build again"
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

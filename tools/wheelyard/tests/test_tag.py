"""Tests `make tag`: it makes the release commit and its tag, or leaves the tree as it was."""

import datetime
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from repository import committed, git, program, wheelyard, write
from wheelyard import tag
from wheelyard.problem import Problem

CHANGELOG = "# Changelog\n\n## [Unreleased]\n\n- New.\n\n## [1.0.0] - 2026-01-01\n\n- First.\n"
PYPROJECT = '[project]\nname = "demo"\nversion = "1.0.0"\n'


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Makes a small project in git."""
    texts = {
        "ci/matrix.toml": '[arch.x86_64]\n[torch."2.15"]\n',
        "CHANGELOG.md": CHANGELOG,
        "pyproject.toml": PYPROJECT,
        ".gitignore": "__pycache__/\n",
    }
    folder = committed(write(tmp_path / "project", texts))
    git(folder, "config", "user.name", "test")
    git(folder, "config", "user.email", "test@localhost")
    return folder


def call(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return wheelyard(folder, "tag", *words, GIT_CONFIG_GLOBAL=os.devnull)


def test_bumps_commits_and_tags(tree: Path) -> None:
    done = call(tree, "1.1.0")
    assert done.returncode == 0, done.stderr
    assert "git push --atomic origin HEAD v1.1.0" in done.stdout
    assert git(tree, "tag", "--points-at", "HEAD") == "v1.1.0"
    assert git(tree, "status", "--porcelain") == ""
    assert 'version = "1.1.0"' in (tree / "pyproject.toml").read_text()
    assert tag.section((tree / "CHANGELOG.md").read_text(), "1.1.0") == "- New."
    assert tag.section((tree / "CHANGELOG.md").read_text(), "Unreleased") == ""
    assert call(tree, "--check").returncode == 0


def test_in_a_hook_of_another_repository_the_tag_is_still_the_projects(
    tree: Path, tmp_path: Path
) -> None:
    other = committed(write(tmp_path / "other", {"a": ""}))
    told = {"GIT_DIR": str(other / ".git"), "GIT_CONFIG_GLOBAL": os.devnull}
    done = wheelyard(tree, "tag", "1.1.0", **told)
    assert done.returncode == 0, done.stderr
    assert (git(tree, "tag"), git(other, "tag")) == ("v1.1.0", "")


REFUSED = {
    "1.1": "is not of the form",
    "one": "is not a version",
    "0.9.0": "is older than 1.0.0",
    "1.1.0+local": "is not of the form",
}


@pytest.mark.parametrize("version", REFUSED)
def test_a_wrong_version_is_refused(tree: Path, version: str) -> None:
    done = call(tree, version)
    assert done.returncode == 1
    assert REFUSED[version] in done.stderr
    assert git(tree, "tag") == ""


def test_a_dirty_tree_is_refused_and_keeps_its_changes(tree: Path) -> None:
    (tree / "new.txt").write_text("work")
    done = call(tree, "1.1.0")
    assert "the tree has changes; commit or stash them" in done.stderr
    assert (tree / "new.txt").read_text() == "work"
    assert git(tree, "tag") == ""


def test_a_tree_without_a_commit_is_not_called_changed(tree: Path) -> None:
    shutil.rmtree(tree / ".git")
    for words in (["1.1.0"], ["--check"]):
        assert "is not a git repository; `git init` makes it one" in call(tree, *words).stderr
    git(tree, "init")
    assert "has no commit yet; `git commit` makes one" in call(tree, "1.1.0").stderr


def test_a_tag_that_exists_is_refused(tree: Path) -> None:
    git(tree, "tag", "v1.1.0")
    assert "the tag v1.1.0 exists" in call(tree, "1.1.0").stderr


def test_when_git_fails_everything_is_undone(tree: Path) -> None:
    before = git(tree, "rev-parse", "HEAD")
    (tree / ".git/hooks").mkdir(exist_ok=True)
    program(tree / ".git/hooks", "pre-commit", "echo no commits today >&2; exit 1")
    done = call(tree, "1.1.0")
    assert done.returncode == 1
    assert "no commits today" in done.stderr
    assert "undone" in done.stderr
    assert git(tree, "rev-parse", "HEAD") == before
    assert git(tree, "status", "--porcelain") == ""
    assert git(tree, "tag") == ""


def test_a_tag_that_disagrees_with_the_version(tree: Path) -> None:
    git(tree, "tag", "v2.0.0")
    done = call(tree, "--check")
    assert done.returncode == 1
    assert "HEAD carries v2.0.0, but pyproject.toml says 1.0.0" in done.stderr
    assert "wheelyard tag 1.0.0" in done.stderr


def test_a_tag_is_of_the_files_as_they_are(tree: Path) -> None:
    assert call(tree, "1.1.0").returncode == 0
    (tree / "new.txt").touch()
    assert "the tree has uncommitted changes" in call(tree, "--check").stderr


def test_a_tag_must_be_on_the_branch_and_stay_there(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit that nobody merged has no review; a tag that moved is not the one that was approved."""
    assert call(tree, "1.1.0").returncode == 0
    branch = git(tree, "branch", "--show-current")
    monkeypatch.setenv("GITHUB_SHA", git(tree, "rev-parse", "HEAD"))
    assert call(tree, "--check", "--on", branch).returncode == 0
    assert "this clone has no origin/main" in call(tree, "--check", "--on", "origin/main").stderr
    git(tree, "branch", "reviewed", "HEAD~1")
    assert "is not part of reviewed" in call(tree, "--check", "--on", "reviewed").stderr
    monkeypatch.setenv("GITHUB_SHA", git(tree, "rev-parse", "HEAD~1"))
    assert "the tag was moved" in call(tree, "--check", "--on", branch).stderr


def test_the_changelog_must_say_something() -> None:
    day = datetime.date(2026, 11, 15)
    with pytest.raises(Problem, match=r"says nothing under \[Unreleased\]"):
        tag.released(CHANGELOG.replace("- New.\n", ""), "1.1.0", day)
    with pytest.raises(Problem, match="lacks the line"):
        tag.released("# Changelog\n", "1.1.0", day)
    prepared = CHANGELOG.replace("- New.\n", "")
    assert tag.released(prepared, "1.0.0", day) == prepared
    with pytest.raises(Problem, match=r"has \[1.0.0\] already, and more under \[Unreleased\]"):
        tag.released(CHANGELOG, "1.0.0", day)


def test_a_version_that_is_made_from_tags_is_tagged(tree: Path) -> None:
    (tree / "pyproject.toml").write_text('[project]\nname = "demo"\ndynamic = ["version"]\n')
    git(tree, "commit", "--quiet", "--all", "--message", "dynamic")
    done = call(tree, "1.1.0")
    assert done.returncode == 0, done.stderr
    assert git(tree, "tag", "--points-at", "HEAD") == "v1.1.0"
    assert "dynamic" in (tree / "pyproject.toml").read_text()
    assert call(tree, "--check").returncode == 0

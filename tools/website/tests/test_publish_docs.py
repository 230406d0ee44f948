"""Tests that the site becomes a branch of the remote, and nothing else changes."""

import subprocess
from pathlib import Path

import pytest

from tools.website.publish import publish


def git(folder: Path, *words: str) -> str:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    git(tmp_path, "init", "--quiet", "--bare", "remote")
    git(tmp_path, "clone", "--quiet", "remote", "clone")
    folder = tmp_path / "clone"
    (folder / ".gitignore").write_text("/build/\n")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message=first")
    return folder


def test_it_is_pushed_again_and_again(clone: Path):
    site = clone / "build/site"
    (site / "ops").mkdir(parents=True)
    for text in ("old", "new"):
        (site / "index.html").write_text(text)
        publish(site, clone)
    remote = clone.parent / "remote"
    assert git(remote, "show", "gh-pages:index.html") == "new"
    assert git(remote, "ls-tree", "-r", "--name-only", "gh-pages").split() == [
        ".nojekyll",
        "index.html",
    ]
    assert git(remote, "rev-list", "--count", "gh-pages") == "1\n"
    assert git(clone, "status", "--porcelain") == ""


def test_without_a_site(clone: Path):
    with pytest.raises(SystemExit, match=r"has no index\.html; `make docs` makes the site"):
        publish(clone / "build/site", clone)

"""Tests that a pinned action is the one of its tag, with real repositories."""

import subprocess
from pathlib import Path

import pytest

from tools.release import actions


def git(folder: Path, *words: str) -> str:
    who = ["-c", "user.name=test", "-c", "user.email=test@localhost"]
    command = ["git", "-C", str(folder), *who, *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def source(tmp_path: Path) -> str:
    """Returns where the repository of the action `someone/thing` is: one commit, with a tag of each kind."""
    folder = tmp_path / "someone/thing"
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", "start")
    git(folder, "tag", "v1.0.0")
    git(folder, "tag", "--annotate", "v1.0.1", "--message", "an object of its own")
    return str(tmp_path / "{owner}/{name}")


@pytest.mark.parametrize("tag", ["v1.0.0", "v1.0.1"])
def test_finds_the_commit_of_a_tag(source: str, tmp_path: Path, tag: str) -> None:
    head = git(tmp_path / "someone/thing", "rev-parse", "HEAD")
    assert actions.tagged_commit("someone/thing", tag, source) == head


def test_a_tag_that_does_not_exist(source: str) -> None:
    with pytest.raises(SystemExit, match=r"someone/thing has no tag v9\.9\.9"):
        actions.tagged_commit("someone/thing", "v9.9.9", source)


def test_a_commit_that_its_tag_does_not_point_to(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workflows = tmp_path / ".github/workflows"
    workflows.mkdir(parents=True)
    line = f"      - uses: someone/thing@{'0' * 40} # v1.0.0\n"
    (workflows / "ci.yml").write_text(line)
    monkeypatch.setattr(actions, "ROOT", tmp_path)
    monkeypatch.setattr("sys.argv", ["actions.py", source])
    with pytest.raises(SystemExit, match=f"someone/thing v1.0.0 is .*, not {'0' * 40}"):
        actions.main()

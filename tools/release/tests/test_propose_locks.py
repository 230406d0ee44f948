"""Tests that renewed locks become a pull request, and nothing else that comes with them does."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools.release.locks import LOCKS, ROOT
from tools.release.propose_locks import is_lock

GH = """#!/bin/sh
echo "$@" >>"$GH_CALLS"
[ "$1 $2" != "pr list" ] || echo "[]"
"""
NAMES = [f"{lock.name}.lock" for lock in LOCKS]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Makes a clone with the scripts and the locks, and its origin; the artifact is in build/locks."""
    work = tmp_path / "work"
    for name in (*NAMES, "tools/release/locks.py", "tools/release/propose_locks.py"):
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, work / name)
    (work / ".gitignore").write_text("/build/\n__pycache__/\n")
    who = ["-c", "user.name=test", "-c", "user.email=test@localhost"]
    git = ["git", "-C", str(work)]
    subprocess.run(["git", "init", "--quiet", "--bare", tmp_path / "origin"], check=True)
    for words in (["init", "-q"], ["add", "-A"], [*who, "commit", "-qm", "x"]):
        subprocess.run([*git, *words], check=True)
    subprocess.run([*git, "remote", "add", "origin", tmp_path / "origin"], check=True)
    for name in NAMES:
        target = work / "build/locks" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(work / name, target)
    (tmp_path / "gh").write_text(GH)
    (tmp_path / "gh").chmod(0o755)
    return work


def propose(clone: Path) -> tuple[int, str, str]:
    """Returns the exit code, what was printed, and the calls of gh."""
    calls = clone.parent / "calls"
    path = f"{clone.parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [sys.executable, "-m", "tools.release.propose_locks", "build/locks"], cwd=clone,
        env={**os.environ, "PATH": path, "GH_CALLS": str(calls)}, capture_output=True, text=True,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr, calls.read_text() if calls.exists() else ""


def pushed(clone: Path) -> str:
    command = [
        "git",
        "-C",
        clone.parent / "origin",
        "diff",
        "--stat",
        "renew-locks~",
        "renew-locks",
    ]
    return subprocess.run(command, capture_output=True, text=True).stdout


def test_what_moved_becomes_a_pull_request(clone: Path) -> None:
    lock = clone / "build/locks/tools/wheelyard/wheelyard/docker/build.lock"
    old = lock.read_text()
    name, version = old.split()[0].split("==")
    lock.write_text(old.replace(f"{name}=={version}", f"{name}==999", 1))
    (clone / "build/locks/Makefile").write_text("evil:\n")
    code, printed, calls = propose(clone)
    assert code == 0, printed
    assert f"| tools/wheelyard/wheelyard/docker/build.lock | {name} | {version} | 999 |" in calls
    assert "tools/wheelyard/wheelyard/docker/build.lock" in pushed(clone)
    assert "1 file changed" in pushed(clone)
    assert calls.endswith("workflow run ci.yml --ref renew-locks\n")


def test_without_news_there_is_none(clone: Path) -> None:
    assert propose(clone) == (0, "every lock is as it was\n", "")


@pytest.mark.parametrize(
    "line",
    ["--index-url https://evil.example", "evil @ file:///x", "-r other.lock", "a==1; import os"],
)
def test_a_line_that_no_lock_has_stops_it(clone: Path, line: str) -> None:
    with (clone / "build/locks/ci/tools.lock").open("a") as lock:
        lock.write(f"{line}\n")
    code, printed, calls = propose(clone)
    assert (code, calls) == (1, "")
    assert "ci/tools.lock has lines that no lock has" in printed


def test_a_lock_that_is_missing_or_a_link_stops_it(clone: Path) -> None:
    lock = clone / "build/locks/ci/sign.lock"
    lock.unlink()
    assert "has no ci/sign.lock" in propose(clone)[1]
    lock.symlink_to("/etc/passwd")
    assert "has no ci/sign.lock" in propose(clone)[1]


@pytest.mark.parametrize("name", NAMES)
def test_every_lock_of_ours_is_one(name: str) -> None:
    assert is_lock((ROOT / name).read_text())

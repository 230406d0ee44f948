"""Tests that a folder that cannot be locked is reported, with what to do."""

import errno
import fcntl
import os
import subprocess
from pathlib import Path

import pytest
from repository import ROOT
from wheelyard.core.lock import only_one
from wheelyard.problem import Problem


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file/release", Path("/proc/release")):
        with (
            pytest.raises(Problem, match=r"cannot be written .*RELEASE_FOLDER=FOLDER"),
            only_one(folder, ""),
        ):
            pass


def test_a_file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with (
        pytest.raises(Problem, match=r"has no locks .*RELEASE_FOLDER=FOLDER"),
        only_one(tmp_path, ""),
    ):
        pass


def test_clean_release_leaves_a_running_release_alone(tmp_path: Path) -> None:
    release = tmp_path / "build/release"
    for name in ("Makefile", "tools"):
        (tmp_path / name).symlink_to(ROOT / name)
    with only_one(release, ""):
        (release / "wheel").touch()
        command = ["make", "--no-print-directory", "clean-release"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode != 0
        assert "a release is running" in done.stderr
        assert (release / "wheel").exists()
    assert subprocess.run(command, cwd=tmp_path, capture_output=True).returncode == 0
    assert [file.name for file in release.iterdir()] == [".lock"]

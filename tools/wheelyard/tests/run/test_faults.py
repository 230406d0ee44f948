"""Tests runs that lose power or run out of disk at any moment: the same command then finishes, with the same bytes."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from disks import small_disk
from test_local import PROGRAM

# Jobs that take a moment, and write enough to fill a disk.
SLOW = PROGRAM.replace(".write_text(job.step)", ".write_text(job.step * 20_000); time.sleep(0.03)")


def command(folder: Path) -> tuple[list[str], dict[str, str]]:
    return [sys.executable, "-c", SLOW], {**os.environ, "RELEASE_FOLDER": str(folder)}


def finish(folder: Path) -> dict[str, str]:
    """Runs the command to its end; returns what it made."""
    words, environment = command(folder)
    done = subprocess.run(words, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not list((folder / "work").iterdir()) if (folder / "work").exists() else True
    assert not list(folder.glob("*.new"))
    return {file.name: file.read_text() for file in folder.glob("*.txt")}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Returns what an undisturbed run makes."""
    return finish(tmp_path_factory.mktemp("whole"))


def test_the_disk_as_it_was_at_any_moment(tmp_path: Path, whole: dict[str, str]) -> None:
    """Copies made during a run are like what a loss of power leaves, and worse: no copy is made in one moment."""
    folder, copies = tmp_path / "folder", 0
    folder.mkdir()
    words, environment = command(folder)
    running = subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL)
    while running.poll() is None:
        subprocess.run(["cp", "-r", folder, tmp_path / f"copy-{copies}"], capture_output=True)
        copies += 1
    assert running.returncode == 0
    assert copies > 10
    for copy in random.Random(15).sample(range(copies), 10):
        assert finish(tmp_path / f"copy-{copy}") == whole


@pytest.mark.parametrize("kilobytes", [4, 64, 150, 250, 400, 550])
def test_a_full_disk(tmp_path: Path, whole: dict[str, str], kilobytes: int) -> None:
    """The run says so in words, and continues when there is room."""
    with small_disk(tmp_path / "small", f"{kilobytes}K") as folder:
        words, environment = command(folder)
        done = subprocess.run(words, env=environment, capture_output=True, text=True)
        assert done.returncode != 0
        assert "the disk is full" in done.stderr
        assert "run the same command again" in done.stderr.replace("\n", " ")
        assert "Traceback" not in done.stderr
        subprocess.run(["mount", "-o", "remount,size=8M", folder], check=True)
        assert finish(folder) == whole

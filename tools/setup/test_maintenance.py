"""Tests when make considers the tools' wheels out of date, and what it asks of a bare machine."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WHEEL = "build/tools/opwright-0.1.0-py3-none-any.whl"


@pytest.mark.parametrize("change", ["nothing", "deleted", "added", "edited", "renamed"])
def test_a_wheel_is_made_again_when_its_sources_change(tmp_path: Path, change: str) -> None:
    clone = clone_in(tmp_path)
    wheel, source = clone / WHEEL, clone / "tools/opwright/opwright/bench/clock.py"
    is_current(clone)  # writes down the list of sources
    wheel.parent.mkdir(parents=True, exist_ok=True)
    wheel.touch()
    for file in (*clone.glob("tools/opwright/**/*"), *wheel.parent.iterdir()):
        if file != wheel:
            os.utime(file, (1, 1))
    assert is_current(clone)
    if change == "deleted":
        source.unlink()
    elif change == "added":
        source.with_name("new.py").write_text("")
        os.utime(source.with_name("new.py"), (1, 1))
    elif change == "edited":
        os.utime(source, (2**32, 2**32))
    elif change == "renamed":
        source.rename(source.with_name("other.py"))
    assert is_current(clone) == (change == "nothing")


def test_a_bare_machine_is_told_at_once_what_to_install(tmp_path: Path) -> None:
    """Without sudo, each package that is named later costs a question to whoever administers the machine."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("bash", "cmp", "git", "grep", "id", "make", "mkdir", "sh"):
        (programs / name).symlink_to(shutil.which(name) or name)
    for name in ("apt-get", "dpkg-query"):
        (programs / name).write_text("#!/bin/sh\nexit 1\n")
        (programs / name).chmod(0o755)
    done = subprocess.run(
        ["make", "--silent", "tools"],
        cwd=clone_in(tmp_path),
        env={"PATH": str(programs), "INSTALL": "no"},
        capture_output=True,
        text=True,
    )
    told = done.stderr.splitlines()[0]
    assert told.endswith(": sudo apt-get install g++ python3 python3-venv python3-dev")


def clone_in(folder: Path) -> Path:
    clone = folder / "a clone"
    subprocess.run(["git", "clone", "--quiet", "--shared", ROOT, clone], check=True)
    # The rules under test, committed or not.
    for file in ("Makefile", "tools/maintenance.mk"):
        (clone / file).write_bytes((ROOT / file).read_bytes())
    return clone


def is_current(clone: Path) -> bool:
    """Whether make has nothing to do for the wheel; raises if make fails."""
    done = subprocess.run(["make", "--question", WHEEL], cwd=clone, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    return done.returncode == 0

"""Tests that everything a killed run has started ends with it, children included, and nothing else does."""

import os
import signal
import subprocess
import sys
import time
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from repository import sleeping, started, wait_until
from wheelyard.core import guard

# Runs two programs: one that ends, and one with a child of its own. Kills the guard in between if it is told `without`.
RUN = """
import os, signal, sys
from pathlib import Path
from wheelyard.core import guard, shell
log = Path(sys.argv[1])
shell.run(["true"], log, what="the first")
if "without" in sys.argv:
    guard._process.kill()
    guard._process.wait()
shell.run(["sh", "-c", f"sleep {sys.argv[2]} & sleep {sys.argv[2]}"], log, what="the second")
"""


@pytest.mark.parametrize("words", [(), ("without",)])
def test_children_end_with_a_run_that_is_killed(tmp_path: Path, words: tuple[str, ...]) -> None:
    log, seconds = tmp_path / "log", f"613.{os.getpid()}"
    with started([sys.executable, "-c", RUN, log, seconds, *words]):
        wait_until(lambda: sleeping(seconds) == 2)
    wait_until(lambda: sleeping(seconds) == 0)


@pytest.mark.parametrize(("ending", "is_run"), [("os.kill(os.getpid(), 9)", True), ("", False)])
def test_a_program_runs_after_a_kill_alone(tmp_path: Path, ending: str, is_run: bool) -> None:
    sign = tmp_path / "sign"
    code = f"import os; from wheelyard.core import guard; guard.run_after_a_kill(['touch', {str(sign)!r}]); {ending}"
    subprocess.run([sys.executable, "-c", code])
    end = time.monotonic() + (10 if is_run else 1)
    while time.monotonic() < end and not sign.exists():
        time.sleep(0.05)
    assert sign.exists() == is_run


def test_a_group_that_has_ended_is_left_alone() -> None:
    """Its number may belong to another group by then."""
    with started(["sleep", "60"], start_new_session=True) as process:
        told = f"+{process.pid}\n-{process.pid}\n".encode()
        subprocess.run([sys.executable, "-I", "-S", "-c", guard.PROGRAM], input=told, check=True)
        assert process.poll() is None
        told = f"+{process.pid}\n+{os.getpid() + 10_000_000}\n".encode()
        subprocess.run([sys.executable, "-I", "-S", "-c", guard.PROGRAM], input=told, check=True)
        assert process.wait(10) == -signal.SIGKILL


def test_what_outlived_the_guard_too_ends_with_the_next_run(tmp_path: Path) -> None:
    """The guard was killed with the run, so only the environment of the remaining programs tells which run they belong
    to."""
    work, others = tmp_path / "work", tmp_path / "work too"

    def left_in(folder: Path) -> AbstractContextManager["subprocess.Popen[bytes]"]:
        given = {**os.environ, "TMPDIR": str(folder / "tmp")}
        return started(["sleep", "60"], start_new_session=True, env=given)

    with left_in(work) as ours, left_in(others) as another:
        guard.end_leftovers(work)
        assert ours.wait(10) == -signal.SIGKILL
        assert another.poll() is None

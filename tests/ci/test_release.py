"""The runner: kill -9 anywhere and the same command finishes; faults end with what to do."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from ci import release as runner
from ci.errors import Problem
from ci.project import ROOT
from ci.release import Release
from ci.state import Result, Task

# Three steps of two tasks; each task notes that it ran, and one waits to be killed if told so.
PROGRAM = textwrap.dedent("""
    import os, sys, time
    from pathlib import Path
    from ci import release
    from ci.progress import Display
    from ci.state import Result, Task

    def tasks(step):
        def one(work, unit):
            def run(log):
                out = work.wheelhouse / f"{step}-{unit}.txt"
                out.write_text(step)
                if os.environ.get("HANG") == f"{step}/{unit}":
                    (work.wheelhouse / "hanging").touch()
                    time.sleep(60)
                with (work.wheelhouse / "ran").open("a") as ran:
                    ran.write(f"{step}/{unit} ")
                return Result([out])
            return Task(step, unit, {"v": "1"}, run)
        return lambda work: [one(work, unit) for unit in ("x", "y")]

    steps = {name: tasks(name) for name in ("build", "gate", "publish")}
    release.run(release.Release(Display()), steps, force=False)
""")


@pytest.mark.parametrize("victim", ["build/x", "build/y", "gate/x", "publish/y"])
def test_killed_anywhere_the_same_command_finishes(tmp_path: Path, victim: str) -> None:
    environment = {**os.environ, "WHEELHOUSE": str(tmp_path), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", PROGRAM]
    killed = subprocess.Popen(command, env={**environment, "HANG": victim}, cwd=ROOT)
    for _ in range(300):
        if (tmp_path / "hanging").exists():
            break
        time.sleep(0.1)
    time.sleep(0.3)
    killed.send_signal(signal.SIGKILL)
    assert killed.wait() == -signal.SIGKILL
    subprocess.run(command, env=environment, cwd=ROOT, check=True, capture_output=True)
    ran = (tmp_path / "ran").read_text().split()
    assert sorted(ran) == sorted(f"{s}/{u}" for s in ("build", "gate", "publish") for u in "xy")
    done = subprocess.run(
        command, env=environment, cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert done.stdout.count("unchanged") == 3


def test_stopped_by_hand_it_ends_at_once_and_leaves_no_program(tmp_path: Path) -> None:
    program = PROGRAM.replace("time.sleep(60)", 'shell.run(["sleep", "47.11"], log, what="it")')
    program = program.replace("import release\n", "import release, shell\n")
    environment = {**os.environ, "WHEELHOUSE": str(tmp_path), "PYTHONPATH": str(ROOT)}
    stopped = subprocess.Popen(
        [sys.executable, "-c", program],
        env={**environment, "HANG": "gate/x"},
        cwd=ROOT,
        stderr=subprocess.DEVNULL,
        # A shell's background jobs, and so the tests among them, ignore this signal.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    while not (tmp_path / "hanging").exists():
        time.sleep(0.1)
    time.sleep(0.5)
    began = time.monotonic()
    stopped.send_signal(signal.SIGINT)
    assert stopped.wait(timeout=30) != 0
    assert time.monotonic() - began < 10
    processes = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout
    assert "sleep 47.11" not in processes


def test_a_failed_task_is_shown_and_the_others_finish(release: Release) -> None:
    def bad(_: Path) -> Result:
        raise Problem("no compiler; install g++")

    tasks = [Task("build", "bad", {}, bad), Task("build", "good", {}, lambda _: Result())]
    with pytest.raises(Problem, match=r"build/bad: no compiler; install g\+\+"):
        runner.run(release, {"build": lambda _: tasks}, force=False)
    assert release.state.tasks["build/good"]["verdict"] == "passed"
    assert release.state.tasks["build/bad"]["verdict"] == "failed"


def test_two_releases_at_once(release: Release) -> None:
    with (
        runner._only_run(release.wheelhouse),
        pytest.raises(Problem, match="another release is running"),
    ):
        runner.run(release, {}, force=False)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small file system, which needs root")
def test_disk_full(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1M", "tmpfs", small], check=True)
    program = PROGRAM.replace("out.write_text(step)", "out.write_text(step * 300_000)")
    environment = {**os.environ, "WHEELHOUSE": str(small), "PYTHONPATH": str(ROOT)}
    try:
        done = subprocess.run(
            [sys.executable, "-c", program],
            env=environment,
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
    finally:
        subprocess.run(["umount", small], check=True)
    assert done.returncode != 0
    assert "the disk is full" in done.stderr
    assert "run the same command again" in done.stderr.replace("\n", " ")

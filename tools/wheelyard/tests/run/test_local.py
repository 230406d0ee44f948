"""Tests the runner on this machine: after kill -9 at any point the same command finishes; a fault ends with advice."""

import errno
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import types
from collections.abc import Callable
from pathlib import Path

import pytest
from recorded import job
from repository import sleeping, started, wait_until
from wheelyard.core import shell
from wheelyard.core.job import Graph, Job, Needs, made
from wheelyard.core.progress import Display
from wheelyard.core.record import Record
from wheelyard.core.workspace import Workspace
from wheelyard.problem import Problem
from wheelyard.run import local
from wheelyard.run.runner import Runner, only_run

# Runs three steps of two jobs; each job records that it ran, and the one named by HANG waits to be killed.
PROGRAM = textwrap.dedent("""
    import os, sys, time, types
    from pathlib import Path
    from wheelyard.core import shell
    from wheelyard.core.job import Graph, Job, Needs, made
    from wheelyard.core.progress import Display
    from wheelyard.problem import Problem
    from wheelyard.run import local, runner

    folder = Path(os.environ["RELEASE_FOLDER"])

    def run(job, workspace):
        (workspace.out / f"{job.step}-{job.unit}.txt").write_text(job.step)
        log = workspace.log
        if os.environ.get("HANG") == job.name:
            (folder / "hanging").touch()
            time.sleep(60)
        with (folder / "ran").open("a") as ran:
            ran.write(f"{job.name} ")
        return ""

    jobs, before = [], {}
    for step in ("build", "gate", "publish"):
        for unit in "xy":
            inputs = {"v": "1"} | ({"of": made(before[unit])} if unit in before else {})
            jobs.append(Job(step, unit, Needs(), inputs, (f"{step}-{unit}.txt",)))
            before[unit] = f"{step}/{unit}"
    try:
        with runner.only_run(folder) as record:
            here = local.Here(folder, Display())
            step = lambda _: types.SimpleNamespace(run=run)
            place = local.Local(folder, step, here)
            whole = runner.Runner(Graph.of(jobs), record, here.display, place)
            whole.run(jobs, force=False)
    except Problem as problem:
        sys.exit(f"error: {problem}")
""")


@pytest.mark.parametrize("victim", ["build/x", "build/y", "gate/x", "publish/y"])
def test_killed_anywhere_the_same_command_finishes(tmp_path: Path, victim: str) -> None:
    environment = {**os.environ, "RELEASE_FOLDER": str(tmp_path)}
    command = [sys.executable, "-c", PROGRAM]
    # Where the machine is busy, the job that runs beside the victim takes a while.
    record, beside = tmp_path / "release.json", victim[:-1] + {"x": "y", "y": "x"}[victim[-1]]
    with started(command, env={**environment, "HANG": victim}) as killed:
        wait_until((tmp_path / "hanging").exists)
        wait_until(lambda: record.exists() and f'"{beside}": ' in record.read_text())
    assert killed.returncode == -signal.SIGKILL
    subprocess.run(command, env=environment, check=True, capture_output=True)
    ran = (tmp_path / "ran").read_text().split()
    assert sorted(ran) == sorted(f"{s}/{u}" for s in ("build", "gate", "publish") for u in "xy")
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    assert done.stdout.count("unchanged") == 3


def test_stopped_by_hand_it_ends_at_once_and_leaves_no_program(tmp_path: Path) -> None:
    seconds = f"47.{os.getpid()}"
    program = PROGRAM.replace(
        "time.sleep(60)", f'shell.run(["sleep", "{seconds}"], log, what="it")'
    )
    with started(
        [sys.executable, "-c", program],
        env={**os.environ, "RELEASE_FOLDER": str(tmp_path), "HANG": "gate/x"},
        stderr=subprocess.DEVNULL,
        # A shell's background jobs, including tests that run in the background, ignore this signal.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as stopped:
        wait_until(lambda: sleeping(seconds) == 1)
        began = time.monotonic()
        stopped.send_signal(signal.SIGINT)
        assert stopped.wait(timeout=30) != 0
    assert time.monotonic() - began < 10
    wait_until(lambda: sleeping(seconds) == 0)


Run = Callable[[Job, Workspace], str]


def run(record: Record, run_one: Run, *jobs: Job, force: bool = False) -> None:
    """Runs jobs whose step calls `run_one`."""
    here = local.Here(record.folder, Display())
    step = types.ModuleType("step")
    step.run = run_one  # type: ignore[attr-defined]
    place = local.Local(record.folder, lambda _: step, here)
    Runner(Graph.of(jobs), record, here.display, place).run(list(jobs), force=force)


def test_a_failed_job_is_shown_and_the_others_finish(record: Record) -> None:
    def one(job: Job, _: Workspace) -> str:
        if job.unit == "bad":
            raise Problem("no compiler; install g++")
        return ""

    with pytest.raises(Problem, match=r"build/bad: no compiler; install g\+\+"):
        run(record, one, job("build/bad"), job("build/good"))
    assert record.jobs["build/good"]["verdict"] == "passed"
    assert record.jobs["build/bad"]["verdict"] == "failed"


@pytest.mark.parametrize(("text", "runs_again"), [("new", True), ("old", False)])
def test_what_changed_is_made_again_with_all_that_follows(
    record: Record, text: str, runs_again: bool
) -> None:
    """An sdist and its wheel are jobs of one step; a later step failed, then the sources changed."""
    text_of_sdist, fails, ran = "old", True, list[str]()

    def one(job: Job, workspace: Workspace) -> str:
        ran.append(job.name)
        if job.step == "verify" and fails:
            raise Problem("a test fails")
        given = [
            workspace.file(name).read_text() for name in ("sdist", "wheel") if name in job.inputs
        ]
        (workspace.out / f"{job.step}-{job.unit}").write_text(*given or [text_of_sdist])
        return ""

    def jobs(state: int) -> list[Job]:
        return [
            job("build/sdist", {"sources": state}, ("build-sdist",)),
            job("build/wheel", {"sdist": made("build/sdist")}, ("build-wheel",)),
            job("repair/wheel", {"wheel": made("build/wheel")}, ("repair-wheel",)),
            job("verify/wheel", {"wheel": made("repair/wheel")}, ("verify-wheel",)),
        ]

    with pytest.raises(Problem, match="a test fails"):
        run(record, one, *jobs(1))
    text_of_sdist, fails = text, False
    ran.clear()
    run(record, one, *jobs(2))
    wheel = ["build/wheel", "repair/wheel"] if runs_again else []
    assert ran == ["build/sdist", *wheel, "verify/wheel"]


def test_a_need_that_this_machine_lacks_is_an_error_before_anything_starts(record: Record) -> None:
    wanting = Job("verify", "s390x", Needs("s390x"), {})
    with pytest.raises(Problem, match=r"verify/s390x needs a machine with s390x, and this is"):
        run(record, lambda *_: pytest.fail("ran"), job("verify/first"), wanting)
    assert record.jobs == {}


def test_a_job_that_may_not_start_yet_leaves_no_trace(record: Record) -> None:
    """Publishing by hand before the gate is a misuse: no part of the release has failed."""
    from wheelyard.core.job import passed

    early = Job("publish", "pypi", Needs(), {"judged": passed("gate/x")})
    here = local.Here(record.folder, Display())
    place = local.Local(record.folder, pytest.fail, here)
    runner = Runner(Graph.of([job("gate/x"), early]), record, here.display, place)
    with pytest.raises(Problem, match="`gate/x` has not passed yet"):
        runner.run([early], force=True)
    assert record.jobs == {}


def test_a_job_sees_only_its_inputs_and_cleans_up(record: Record) -> None:
    def one(_: Job, workspace: Workspace) -> str:
        (workspace.scratch("big") / "file").write_text("temporary")
        assert set(workspace.inputs) == {"n"}
        return ""

    run(record, one, job("build/x", {"n": 1}))
    assert list((record.folder / "work").iterdir()) == []


def test_temporary_files_are_part_of_a_runs_work(
    record: Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Temporary files, ours and those of programs, that a killed run leaves are removed by the next one."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    seen = list[Path]()

    def one(_: Job, workspace: Workspace) -> str:
        seen.append(Path(tempfile.mkdtemp()))
        shell.run(["mktemp"], workspace.log, what="mktemp")
        seen.append(Path(workspace.log.read_text().splitlines()[-1]))
        return ""

    run(record, one, job("build/x"))
    assert all(path.is_relative_to(record.folder / "work") for path in seen)
    assert not any(path.exists() for path in seen)
    assert tempfile.gettempdir() == os.environ["TMPDIR"] == str(tmp_path)


def test_two_releases_at_once(record: Record) -> None:
    with (
        only_run(record.folder),
        pytest.raises(Problem, match="another release is running"),
        only_run(record.folder),
    ):
        pytest.fail("both run")


def test_disk_full_after_the_jobs(tmp_path: Path) -> None:
    """This may happen while the report is written."""
    with pytest.raises(Problem, match="the disk is full"), only_run(tmp_path):
        raise OSError(errno.ENOSPC, "No space left on device")


def test_the_folders_of_what_a_job_leaves_are_ours(tmp_path: Path) -> None:
    """A container, whose user is root, finds the folders: nobody else could empty one that it makes."""
    seen: list[Path] = []

    def run(_: Job, workspace: Workspace) -> str:
        seen.extend(sorted(path.relative_to(workspace.out) for path in workspace.out.rglob("*")))
        return ""

    place = local.Local(
        tmp_path, lambda _: types.SimpleNamespace(run=run), local.Here(tmp_path, Display())
    )
    wanted = Job("smoke", "x", Needs(), {}, ("evidence/x.json", "?attestations/*.json"))
    place.run(wanted, {}, tmp_path / "job", tmp_path / "log")
    assert seen == [Path("attestations"), Path("evidence")]

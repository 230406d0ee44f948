"""Tests real releases that are killed or lose power at any moment of any step: the same command then finishes.

KILLS=100 asks for about that many kills; `pytest -s` shows where they hit.
"""

import fcntl
import itertools
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

import held_release
import pytest
from demo_project import containers, copy_of_demo, engine_up, engines, processes, record
from disks import Disk
from held_release import PLACES, REACHED
from repository import outer_environment, real_release, wheelyard
from wheelyard.core import engine
from wheelyard.core.digest import sha256
from wheelyard.steps import STEPS
from wheelyard.tools import index

pytestmark = real_release()
KILLS = int(os.environ.get("KILLS", "20"))
ROUNDS = 2  # releases that are killed again and again; when the first is killed, the second loses its power
IN_A_ROW = max(KILLS // ROUNDS // len(PLACES), 1)  # in one place of one release
STOPPED_IN = ("build", "build", "repair", "verify", "verify")
LONGEST_DELAY = 12  # at most so many seconds until a kill
RAN_BEFORE = engines()
moments = random.Random(15)


@dataclass(frozen=True)
class Whole:
    """A release that nobody disturbed."""

    project: Path
    made: dict[str, str]
    seconds: dict[str, float]  # how long a kill may wait in each place


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    """Releases the demo project with one more requirement, so that an image has to be made."""
    project = copy_of_demo(tmp_path_factory.mktemp("whole") / "project")
    matrix = project / "ci/matrix.toml"
    matrix.write_text(matrix.read_text().replace("[verify]", '[verify]\nrequires = ["iniconfig"]'))
    done = wheelyard(project, "release")
    assert done.returncode == 0, done.stdout + done.stderr
    seconds = {step: min(took(project, step), LONGEST_DELAY) for step in STEPS}
    seconds |= {"start": 1.5, "report": 0.2}
    return Whole(project, made(project), seconds)


def took(project: Path, step: str) -> float:
    ran = [(job["facts"]["ran"]["began"], job["seconds"]) for job in of_step(project, step)]
    return float(max(began + seconds for began, seconds in ran) - min(began for began, _ in ran))


def of_step(project: Path, step: str) -> list[dict[str, dict[str, dict[str, float]]]]:
    return [job for name, job in record(project).items() if name.split("/")[0] == step]


def made(project: Path) -> dict[str, str]:
    """Returns every file that the release made from the sources, and its sha256."""
    outputs = [job["outputs"] for step in ("build", "repair") for job in of_step(project, step)]
    files = [path for paths in outputs for path in paths]
    assert len(files) >= 5, "an sdist, two wheels as built and as repaired"
    return {path: sha256(project / "build/release" / path) for path in files}


def another(whole: Whole, project: Path, *, with_downloads: bool) -> Path:
    """Copies the same commit to another folder, with nothing made yet."""
    shutil.copytree(whole.project, project, ignore=shutil.ignore_patterns("wheelhouse", "build"))
    if with_downloads:
        (project / "build/release").mkdir(parents=True)
        (project / "build/release/torch").symlink_to(whole.project / "build/release/torch")
    subprocess.run(["sync", "--file-system", project], check=True)
    return project


def remove_verify_image(whole: Whole) -> None:
    (image,) = (
        job["facts"]["verdict"]
        for name, job in record(whole.project).items()
        if name.startswith("image/verify")
    )
    with engine_up() as docker:
        subprocess.run([docker, "image", "rm", image], capture_output=True, check=True)


# --- Killed ---------------------------------------------------------------------------------------


class Running:
    """A running `wheelyard release`, and its place."""

    def __init__(self, project: Path, temporary: Path, place: str) -> None:
        """Starts a release that will not pass that place."""
        self.printed = temporary.with_suffix(".printed")
        command = [sys.executable, "-P", Path(held_release.__file__), place]
        with self.printed.open("wb") as output:
            self.process = subprocess.Popen(
                # A test in the background ignores Ctrl-C, and its programs would, too.
                ["env", "--default-signal=INT", *command],
                cwd=project, env={**outer_environment(), "TMPDIR": str(temporary)},
                stdout=output, stderr=subprocess.STDOUT,
            )  # fmt: skip

    def wait(self, seconds: dict[str, float]) -> str:
        """Waits until a random moment after the release came to its place, or to a later one if there was nothing to
        do; returns that place."""
        while not (lines := re.findall(rf"{REACHED}(\w+)\n", self.printed.read_text())):
            assert self.process.poll() is None, self.printed.read_text()
            time.sleep(0.01)
        time.sleep(moments.uniform(0, seconds[lines[0]]))
        return str(lines[0])

    def end(self) -> int:
        self.process.kill()
        return self.process.wait()


def test_killed_in_every_step(whole: Whole, tmp_path: Path) -> None:
    """Kills it again and again in one folder until it finishes; every second kill cuts the power."""
    hits = {place: Counter[bool]() for place in PLACES}
    (tmp_path / "tmp").mkdir()
    for number in range(ROUNDS):
        with closing(Disk(tmp_path / "disk")) as disk:
            project = another(whole, disk.folder / "project", with_downloads=number == 0)
            remove_verify_image(whole)
            power_fails = itertools.cycle((number == 0, number != 0))
            for place in (place for place in PLACES for _ in range(IN_A_ROW)):
                running, loses_power = Running(project, tmp_path / "tmp", place), next(power_fails)
                hit = running.wait(whole.seconds)
                if loses_power:
                    disk.lose_power()
                ended = running.end()
                if loses_power:
                    end_all_of(project)
                    disk.start_again()
                assert loses_power or ended == -signal.SIGKILL, running.printed.read_text()
                hits[hit][loses_power] += 1
            finishes(project, whole)
            is_tidy(project)
            assert not list((tmp_path / "tmp").iterdir())
    print(f"\n{ROUNDS} releases; how often they were killed, and how often they lost power:")
    print(*(f"  {place:14}{n[False]:4}{n[True]:4}" for place, n in hits.items()), sep="\n")
    assert all(n.total() >= ROUNDS for n in hits.values())


def end_all_of(project: Path) -> None:
    """Ends everything that a machine without power would not run any more."""
    with engine_up() as docker:
        for container in containers(project):
            subprocess.run([docker, "rm", "--force", "--volumes", container], capture_output=True)
    for process in processes(project):
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)


def finishes(project: Path, whole: Whole) -> None:
    """Checks that the same command now makes the same bytes, and that the index has each file unchanged."""
    done = wheelyard(project, "release")
    assert done.returncode == 0, done.stdout + done.stderr
    assert {job["verdict"] for job in record(project).values()} == {"passed"}
    assert made(project) == whole.made
    (sdist,) = record(project)["build/sdist"]["outputs"].values()
    leaving = {Path(p).name: d for p, d in whole.made.items() if not p.startswith("built/")}
    with index.embedded(project / "build/release/index", sdist) as served:
        assert served.files("demo-ext") == leaving


def is_tidy(project: Path) -> None:
    """Checks that no process, container, lock, engine or partial file is left."""
    assert processes(project) == []
    assert not engine.is_left_over()
    assert not forgotten_engines()
    assert containers(project) == []
    release = project / "build/release"
    assert not list((release / "work").glob("*"))
    assert not list(release.glob("*.new"))
    with (release / ".lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def forgotten_engines() -> set[int]:
    """Returns the engines that nobody would ever stop; one that ran before belongs to somebody else."""
    running = engines()
    noted = engine._noted("dockerd", engine.STARTED)
    return (running - {noted} - RAN_BEFORE) & engines()  # other tests start and stop engines too


# --- Stopped --------------------------------------------------------------------------------------


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_runs_on_after_a_release_was_stopped(
    sign: signal.Signals, whole: Whole, tmp_path: Path
) -> None:
    """Stops it at random moments of its steps; after a kill, its guard needs a while."""
    (tmp_path / "tmp").mkdir()
    project = another(whole, tmp_path / "project", with_downloads=True)
    for place in STOPPED_IN:
        running = Running(project, tmp_path / "tmp", place)
        running.wait({step: min(seconds, 4) for step, seconds in whole.seconds.items()})
        running.process.send_signal(sign)
        assert running.process.wait(60) != 0
        end = time.monotonic() + (20 if sign == signal.SIGKILL else 0)
        while time.monotonic() < end and (processes(project) or engine.is_left_over()):
            time.sleep(0.2)
        assert processes(project) == []
        assert not engine.is_left_over()
        assert containers(project) == []
    finishes(project, whole)

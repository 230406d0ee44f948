"""Tests that the container engine is started and stopped without disturbing anything else on the machine."""

import dataclasses
import fcntl
import os
import shutil
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from repository import program, started
from wheelyard.core import engine
from wheelyard.core.engine import Engine
from wheelyard.core.progress import Display
from wheelyard.problem import Problem
from wheelyard.run import local


def sleeper(folder: Path, name: str) -> Path:
    """Makes a program of that name that sleeps for a given number of seconds."""
    (folder / "sleep").mkdir(exist_ok=True)
    return Path(shutil.copy("/bin/sleep", folder / "sleep" / name))


def test_a_process_id_that_another_got_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {name: tmp_path / name for name in engine.PIDS}
    monkeypatch.setattr(engine, "PIDS", files)
    right_one, wrong_one = (sleeper(tmp_path, name) for name in ("dockerd", "postgres"))
    with started([right_one, "60"]) as right, started([wrong_one, "60"]) as wrong:
        files["dockerd"].write_text(f"{right.pid}\n")
        files["containerd"].write_text(f"{wrong.pid}\n")
        engine._forget_stale_pids()
    assert [name for name, file in files.items() if file.exists()] == ["dockerd"]


def test_a_process_runs_while_it_becomes_another_program(tmp_path: Path) -> None:
    """A new engine was once taken for one that had ended, because it was looked at in the moment of its exec."""
    asleep = sleeper(tmp_path, "dockerd")
    (tmp_path / "again").write_text('[ $1 -lt 500 ] || exec "$2" 60; exec sh "$0" $(($1 + 1)) "$2"')
    with started(["sh", tmp_path / "again", "0", asleep]) as changing:
        names = {"sh"}
        while names <= {"sh"}:
            names.add(engine._program(changing.pid))
        assert names == {"sh", "dockerd"}
    assert engine._program(changing.pid) == ""


@pytest.fixture(autouse=True)
def apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keeps the tests away from the machine's own engine."""
    for name in ("USERS", "TURN", "STARTED"):
        monkeypatch.setattr(engine, name, tmp_path / name)
    monkeypatch.setattr(engine, "START_SECONDS", 5)


@pytest.fixture
def ours(tmp_path: Path) -> Iterator[Engine]:
    """Yields an engine that we started: its process, and a program that lists the containers in a file."""
    (tmp_path / "containers").touch()
    docker = str(program(tmp_path, "docker", f"cat {tmp_path}/containers"))
    with started([sleeper(tmp_path, "dockerd"), "60"]) as daemon, engine.USERS.open("ab") as users:
        engine.STARTED.write_text(str(daemon.pid))
        fcntl.flock(users, fcntl.LOCK_SH)
        yield Engine(docker, "label", docker, users)


def left(ours: Engine) -> tuple[bool, str]:
    """Leaves the engine; returns whether it still runs, and what was said."""
    pid = int(engine.STARTED.read_text())
    said: list[str] = []
    ours.leave(said.append)
    runs = engine._program(pid) == "dockerd"
    assert engine.STARTED.exists() == runs
    return runs, " ".join(said)


def test_it_is_stopped_with_the_release(ours: Engine) -> None:
    runs, said = left(ours)
    assert not runs
    assert "stopping the container engine" in said


def test_it_stays_up_while_a_container_of_others_runs(ours: Engine, tmp_path: Path) -> None:
    (tmp_path / "containers").write_text("0123456789ab\n")
    runs, said = left(ours)
    assert runs
    assert "stays up for other users" in said


def test_the_last_of_two_releases_stops_it(ours: Engine) -> None:
    other = engine.USERS.open("ab")
    fcntl.flock(other, fcntl.LOCK_SH)
    assert left(ours)[0]
    assert not left(dataclasses.replace(ours, users=other))[0]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root stops an engine")
def test_one_that_a_killed_release_left_is_stopped_by_the_next(
    ours: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next run stops it even if it has nothing else to do, because the release was killed in its last step."""
    assert ours.users is not None
    ours.users.close()  # as the system does for a killed process
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(engine, "CLIENTS", [])
    monkeypatch.setattr(engine.debian, "need", lambda *_: None)
    pid = int(engine.STARTED.read_text())
    local.Here(tmp_path / "release", Display()).close()
    assert engine._program(pid) != "dockerd"
    assert not engine.STARTED.exists()


def test_an_unused_run_leaves_the_engine_to_others(ours: Engine, tmp_path: Path) -> None:
    """The release that started the engine is still running."""
    local.Here(tmp_path / "release", Display()).close()
    assert engine._program(int(engine.STARTED.read_text())) == "dockerd"
    assert ours.users is not None


def test_an_engine_of_others_is_never_stopped(ours: Engine) -> None:
    engine.STARTED.unlink()
    ours.leave(pytest.fail)


def slow_engine(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Installs an engine that takes a second until it answers."""
    program(folder, "docker", f"[ $1 = ps ] || [ -e {folder}/up ]")
    asleep = sleeper(folder, "dockerd")
    start = f"echo $$ >>{folder}/started; sleep 1; touch {folder}/up; exec {asleep} 60"
    program(folder, "dockerd", start)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    monkeypatch.setattr(engine, "PIDS", {})


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts an engine")
@pytest.mark.filterwarnings("ignore::ResourceWarning")  # the engine outlives its starter
def test_two_releases_start_one_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow_engine(tmp_path, monkeypatch)
    folders = [tmp_path / "a", tmp_path / "b"]
    with ThreadPoolExecutor() as pool:
        first, second = pool.map(lambda folder: engine.ready(folder, lambda _: None), folders)
    (pid,) = map(int, (tmp_path / "started").read_text().split())
    first.leave(lambda _: None)
    assert engine._program(pid) == "dockerd"
    second.leave(lambda _: None)
    assert engine._program(pid) != "dockerd"


KILLED = """
import pathlib, sys
from wheelyard.core import engine
engine.USERS, engine.TURN, engine.STARTED, folder = map(pathlib.Path, sys.argv[1:])
engine.ready(folder, print)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts an engine")
def test_a_release_killed_while_its_engine_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next release waits for that engine, and stops it."""
    slow_engine(tmp_path, monkeypatch)
    files = [engine.USERS, engine.TURN, engine.STARTED, tmp_path / "a"]
    with started([sys.executable, "-c", KILLED, *files]) as killed:
        while killed.poll() is None and not (tmp_path / "started").exists():
            time.sleep(0.01)
    following = engine.ready(tmp_path / "b", pytest.fail)
    (pid,) = map(int, (tmp_path / "started").read_text().split())
    assert engine._program(pid) == "dockerd"
    following.leave(lambda _: None)
    assert engine._program(pid) != "dockerd"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts an engine")
def test_one_that_cannot_be_asked_is_not_forgotten(
    ours: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its client is not on PATH here; other users can still reach it, and stop it."""
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(Problem, match="no container engine"):
        engine.ready(tmp_path / "b", pytest.fail)
    program(tmp_path, "docker", "false")
    program(tmp_path, "dockerd", "false")
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    monkeypatch.setattr(engine, "START_SECONDS", 1)
    with pytest.raises(Problem, match="does not answer; stop it"):
        engine.ready(tmp_path / "b", pytest.fail)
    assert not left(ours)[0]


OLD, NEW, NEW_WITH_PLUGIN = (
    "echo 20.10.24+dfsg1",
    "[ $1 = version ] && echo 28.2.2",
    "echo 28.2.2",
)


@pytest.mark.parametrize(
    ("on_path", "debians", "chosen"),
    [(OLD, NEW, 0), (NEW_WITH_PLUGIN, OLD, 0), (NEW, OLD, 1), (NEW, NEW_WITH_PLUGIN, 1)],
)
def test_a_client_that_can_build_is_taken(
    on_path: str, debians: str, chosen: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = {"docker": on_path, "debians": debians}
    clients = [str(program(tmp_path, name, line)) for name, line in made.items()]
    monkeypatch.setattr(engine, "CLIENTS", clients)
    assert engine._builder("docker", pytest.fail) == clients[chosen]


def test_without_one_the_plugin_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "CLIENTS", [str(program(tmp_path, "docker", NEW))])
    monkeypatch.setattr(engine.debian, "_is_installed", lambda _: False)
    monkeypatch.setenv("INSTALL", "no")
    with pytest.raises(Problem, match="apt-get install docker-buildx"):
        engine._builder("docker", pytest.fail)


@pytest.mark.parametrize(
    ("brought", "further"), [("dockerd docker", []), ("dockerd", ["docker-cli"])]
)
def test_the_client_is_installed_where_it_is_a_package_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, brought: str, further: list[str]
) -> None:
    asked: list[str] = []

    def need(packages: list[str], *_: object) -> None:
        asked.extend(packages)
        for name in brought.split():
            program(tmp_path, name, "exit 1")

    def launch(*_: object) -> int:
        raise Problem("far enough")

    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(engine.debian, "need", need)
    monkeypatch.setattr(engine, "_launch", launch)
    with pytest.raises(Problem, match="far enough"):
        engine._start(tmp_path / "log", print)
    assert asked == ["docker.io", "iptables", *further]


@pytest.mark.parametrize(("room", "said"), [(1 << 60, 1), (0, 0)])
def test_a_disk_that_is_nearly_full_is_named(
    room: int, said: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docker = str(program(tmp_path, "docker", f"echo {tmp_path}"))
    monkeypatch.setattr(engine, "ROOM", room)
    lines: list[str] = []
    engine._look_for_room(docker, lines.append)
    assert [f"GiB are free in {tmp_path}; " in line for line in lines] == [True] * said


def test_the_disk_of_another_machine_is_not_looked_at(tmp_path: Path) -> None:
    for line in ("echo /there/alone", "exit 1"):
        engine._look_for_room(str(program(tmp_path, "docker", line)), pytest.fail)

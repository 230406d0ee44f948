"""The container engine: started and stopped with care for what else runs on the machine."""

import dataclasses
import fcntl
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from ci import engine
from ci.engine import Engine


@contextmanager
def process(name: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that goes by that name."""
    running = subprocess.Popen([name, "60"], executable="/bin/sleep")
    try:
        while not engine._is_running(Path(name).name, running.pid):  # it has no name at first
            time.sleep(0.01)
        yield running
    finally:
        running.kill()
        running.wait()


def test_a_process_id_that_another_got_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {name: tmp_path / name for name in engine.PIDS}
    monkeypatch.setattr(engine, "PIDS", files)
    with process("/usr/sbin/dockerd") as right, process("postgres") as wrong:
        files["dockerd"].write_text(f"{right.pid}\n")
        files["containerd"].write_text(f"{wrong.pid}\n")
        engine._forget_stale_pids()
    assert [name for name, file in files.items() if file.exists()] == ["dockerd"]


@pytest.fixture
def ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    """An engine that we started: its process, and a program that lists the containers in a file."""
    monkeypatch.setattr(engine, "START_SECONDS", 1)
    (tmp_path / "containers").touch()
    command = tmp_path / "docker"
    command.write_text(f"#!/bin/sh\ncat {tmp_path}/containers\n")
    command.chmod(0o755)
    note = tmp_path / "engine.json"
    with process("dockerd") as daemon, (tmp_path / "users").open("ab") as users:
        note.write_text(json.dumps({"pid": daemon.pid}))
        fcntl.flock(users, fcntl.LOCK_SH)
        yield Engine(str(command), "label", note, users)


def stopped(ours: Engine) -> tuple[bool, str]:
    """Whether ending the release ended the engine, and what was said."""
    assert ours.ours is not None
    pid = json.loads(ours.ours.read_text())["pid"]
    said: list[str] = []
    ours.leave(said.append)
    assert not ours.ours.exists()
    return not engine._is_running("dockerd", pid), " ".join(said)


def test_it_is_stopped_with_the_release(ours: Engine) -> None:
    is_stopped, said = stopped(ours)
    assert is_stopped
    assert "stopping the container engine" in said


def test_it_stays_up_while_a_container_of_others_runs(ours: Engine, tmp_path: Path) -> None:
    (tmp_path / "containers").write_text("0123456789ab\n")
    is_stopped, said = stopped(ours)
    assert not is_stopped
    assert "others use it: it stays up" in said


def test_it_stays_up_while_another_release_runs(ours: Engine, tmp_path: Path) -> None:
    with (tmp_path / "users").open("ab") as other:
        fcntl.flock(other, fcntl.LOCK_SH)
        assert not stopped(ours)[0]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts an engine")
@pytest.mark.filterwarnings("ignore::ResourceWarning")  # the engine outlives who started it
def test_two_releases_start_one_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs that stand in for the engine: it takes a second until it answers."""
    programs = {
        "docker": f"[ $1 = ps ] || [ -e {tmp_path}/up ]",
        "dockerd": f"echo $$ >>{tmp_path}/started; sleep 1; touch {tmp_path}/up; "
        "exec -a dockerd sleep 60",
    }
    for name, line in programs.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{line}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    for name in ("USERS", "TURN"):
        monkeypatch.setattr(engine, name, tmp_path / name)
    monkeypatch.setattr(engine, "PIDS", {})
    houses = [tmp_path / "a", tmp_path / "b"]
    for house in houses:
        house.mkdir()
    with ThreadPoolExecutor() as pool:
        engines = list(pool.map(lambda house: engine.ready(house, lambda _: None), houses))
    (first,) = (tmp_path / "started").read_text().split()
    assert [made.ours is not None for made in engines].count(True) == 1
    (starter,) = (made for made in engines if made.ours)
    starter.leave(lambda _: None)
    assert engine._is_running("dockerd", int(first))  # the other release still uses it
    os.kill(int(first), signal.SIGTERM)
    for made in engines:
        dataclasses.replace(made, ours=None).leave(pytest.fail)


def test_an_engine_of_others_is_never_stopped(ours: Engine) -> None:
    dataclasses.replace(ours, ours=None).leave(pytest.fail)
    assert ours.ours is not None
    assert ours.ours.exists()

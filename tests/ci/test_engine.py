"""The container engine: started and stopped with care for what else runs on the machine."""

import dataclasses
import fcntl
import json
import subprocess
from collections.abc import Iterator
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
    ours.stop_if_ours(said.append)
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


def test_an_engine_of_others_is_never_stopped(ours: Engine) -> None:
    dataclasses.replace(ours, ours=None).stop_if_ours(pytest.fail)
    assert ours.ours is not None
    assert ours.ours.exists()

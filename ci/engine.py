"""The container engine: docker or podman, found; as root on Debian, set up if missing."""

import dataclasses
import fcntl
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ci import shell
from ci.errors import Problem
from ci.project import ROOT

START_SECONDS = 60
# Whoever uses the engine shares the one lock, and who stops it must have it alone; the other is for
# looking and starting, one at a time.
USERS, TURN = Path("/run/lock/ci-engine-users"), Path("/run/lock/ci-engine-turn")
# Where dockerd and its containerd note their process ids.
PIDS = {
    "dockerd": Path("/run/docker.pid"),
    "containerd": Path("/run/docker/containerd/containerd.pid"),
}
ADVICE = """no container engine: neither `docker` nor `podman` answers. On Debian or Ubuntu:
  sudo apt-get install docker.io && sudo systemctl start docker && sudo usermod -aG docker $USER
then log in again, or run the same command as root: it installs and starts docker by itself."""


@dataclass(frozen=True)
class Engine:
    command: str
    label: str  # marks the containers of one wheelhouse
    ours: Path | None = None  # the note that we started it, with its process id
    users: IO[bytes] | None = None  # USERS, locked

    def run(
        self, image: str, options: list[str], command: list[str], log: Path, *, what: str
    ) -> None:
        """Runs a command in a fresh container that is removed afterwards."""
        words = [self.command, "run", "--rm", "--init", f"--label={self.label}", *options]
        shell.run([*words, image, *command], log, what=what)

    def remove_leftovers(self, say: Callable[[str], None]) -> None:
        """Containers of a run that was killed."""
        command = [self.command, "ps", "--all", "--quiet", f"--filter=label={self.label}"]
        if left := (shell.capture(command) or "").split():
            say(f"removing {len(left)} containers left by a stopped run")
            shell.capture([self.command, "rm", "--force", "--volumes", *left])

    def has_image(self, tag: str) -> bool:
        return (
            shell.capture([self.command, "image", "inspect", "--format", "{{.Id}}", tag])
            is not None
        )

    def leave(self, say: Callable[[str], None]) -> None:
        """Stops an engine that we started, unless others use it."""
        if self.ours is not None:
            self._stop(self.ours, say)
        if self.users is not None:
            self.users.close()

    def _stop(self, note: Path, say: Callable[[str], None]) -> None:
        if not self._is_last_user():
            say("the container engine was started for this release, but others use it: it stays up")
            note.unlink()
            return
        pid = json.loads(note.read_text())["pid"]
        say(f"stopping the container engine that was started for this release (process {pid})")
        os.kill(pid, signal.SIGTERM)
        for _ in range(START_SECONDS * 10):
            if not _is_running("dockerd", pid):
                break
            time.sleep(0.1)
        note.unlink()

    def _is_last_user(self) -> bool:
        """Whether no container runs, and no other release waits for its next one."""
        try:
            if self.users:
                fcntl.flock(self.users, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return not shell.capture([self.command, "ps", "--quiet"])


def ready(wheelhouse: Path, say: Callable[[str], None]) -> Engine:
    """An engine that answers, without leftovers of an earlier run."""
    if os.geteuid() != 0:  # and so neither starts nor stops one
        engine = _found(wheelhouse, say)
    else:
        users = USERS.open("ab")
        fcntl.flock(users, fcntl.LOCK_SH)
        with TURN.open("ab") as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)
            engine = dataclasses.replace(_found(wheelhouse, say), users=users)
    engine.remove_leftovers(say)
    return engine


def _found(wheelhouse: Path, say: Callable[[str], None]) -> Engine:
    label = f"ci.release={wheelhouse}"
    note = wheelhouse / "engine.json"
    if not _left_by_us(note):
        note.unlink(missing_ok=True)
    for command in ("docker", "podman"):
        if shell.capture([command, "info"]) is not None:
            return Engine(command, label, note if command == "docker" and note.exists() else None)
    if os.geteuid() != 0:
        raise Problem(ADVICE)
    if not shutil.which("dockerd"):
        if not shutil.which("apt-get"):
            raise Problem(ADVICE)
        say("no container engine found: installing Debian's docker.io")
        done = subprocess.run(
            [ROOT / "scripts/need.sh", "docker.io", "iptables"], capture_output=True, text=True
        )
        if done.returncode != 0:
            raise Problem(f"docker.io could not be installed:\n{done.stderr.strip()}\n{ADVICE}")
    return _start(wheelhouse, label, note, say)


def _start(wheelhouse: Path, label: str, note: Path, say: Callable[[str], None]) -> Engine:
    say("starting the container engine (dockerd); it is stopped when the release ends")
    _forget_stale_pids()
    log = wheelhouse / "logs" / "dockerd.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        daemon = subprocess.Popen(["dockerd"], stdout=output, stderr=output, start_new_session=True)
    note.write_text(json.dumps({"pid": daemon.pid}))
    for _ in range(START_SECONDS * 2):
        if shell.capture(["docker", "info"]) is not None:
            return Engine("docker", label, note)
        if daemon.poll() is not None:
            break
        time.sleep(0.5)
    note.unlink()
    raise Problem(f"dockerd does not start:\n{shell.tail(log)}")


def _left_by_us(note: Path) -> bool:
    """Whether a run that was killed left its engine running."""
    try:
        return _is_running("dockerd", int(json.loads(note.read_text())["pid"]))
    except (OSError, ValueError, KeyError):
        return False


def _forget_stale_pids() -> None:
    """After a kill another process may have got the noted id; dockerd would refuse to start."""
    for program, file in PIDS.items():
        if file.exists():
            noted = file.read_text().strip()
            if not noted.isdecimal() or not _is_running(program, int(noted)):
                file.unlink()


def _is_running(program: str, pid: int) -> bool:
    try:  # a process that has ended, but was not waited for, has no command line
        words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except OSError:
        return False
    return Path(words[0]).name == program

"""Finds the container engine, docker or podman; as root on Debian, installs docker if both are missing."""

import fcntl
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from wheelyard.core import debian, shell
from wheelyard.core.environment import ENGINE
from wheelyard.core.lock import turn
from wheelyard.problem import Problem

START_SECONDS = 60
# Bytes: roughly the images of one project and the layers that the engine keeps of them.
ROOM = 20 << 30
IMAGE = "wheelyard.image"  # labels an image with the tag that it was made for
RUN = f"wheelyard.run={secrets.token_hex(8)}"  # labels the containers of this process
# Only root can use these files. Every user of the engine holds a shared lock on `users`; stopping the engine takes an
# exclusive one. `turn` lets one process at a time look for an engine or start one. `pid` names an engine that we
# started.
USERS, TURN, STARTED = (Path(f"/run/ci-engine.{name}") for name in ("users", "turn", "pid"))
# The files in which dockerd and its containerd write their process ids.
PIDS = {
    "dockerd": Path("/run/docker.pid"),
    "containerd": Path("/run/docker/containerd/containerd.pid"),
}
ADVICE = """no container engine: neither `docker` nor `podman` answers. On Debian or Ubuntu:
  sudo apt-get install docker.io && sudo systemctl start docker && sudo usermod -aG docker $USER
then log in again, or run the same command as root: it installs and starts docker by itself."""
# Up to version 22 the docker client contains BuildKit; later ones have it in a plugin, which may be missing. Then
# Debian's own client may work where one that somebody put on PATH by hand does not.
CLIENTS = ("docker", "/usr/bin/docker")
LAST_WITHOUT_PLUGIN = 22
NO_BUILDER = """docker cannot build images: its plugin buildx is missing. On Debian or Ubuntu:
  sudo apt-get install docker-buildx
or, with Docker's own packages, docker-buildx-plugin."""


@dataclass(frozen=True)
class Engine:
    command: str
    label: str  # marks the containers of one release folder
    builder: str  # the client that builds images
    users: IO[bytes] | None = None  # USERS, locked
    address: str = ""  # docker's engine, if the user's settings name one

    @property
    def told(self) -> dict[str, str]:
        """Variables that locate the engine for its client. They replace the user's settings, which may change every
        container."""
        if self.command == "podman":  # images are in the user's home
            return {"HOME": str(Path.home()), "CONTAINERS_CONF": os.devnull}
        return {"DOCKER_HOST": self.address} if self.address else {}

    def run(
        self, image: str, options: list[str], command: list[str], log: Path, *, what: str
    ) -> None:
        """Runs a command in a fresh container that is removed afterwards."""
        with self.labels() as labels:
            words = [self.command, "run", "--rm", "--init", *labels, *options, image, *command]
            shell.run(words, log, what=what, env=self.told, allow=ENGINE)

    @contextmanager
    def labels(self) -> Iterator[list[str]]:
        """Yields options that label the containers of one program, and removes those containers if it fails or is
        stopped."""
        program = f"wheelyard.program={secrets.token_hex(8)}"
        try:
            yield [f"--label={label}" for label in (self.label, RUN, program)]
        except BaseException:
            _remove(self.command, program)
            raise

    def has_image(self, name: str) -> bool:
        return shell.capture([self.command, "image", "inspect", name]) is not None

    def has_ours(self, tag: str) -> bool:
        """Whether wheelyard made the image under this tag, for any user. The tag alone proves nothing; anybody may have
        used it. The label is as trustworthy as the engine: whoever can write it is root there, and can change layers
        too."""
        shown = f'{{{{index .Config.Labels "{IMAGE}"}}}}'
        return shell.capture([self.command, "image", "inspect", "--format", shown, tag]) == tag

    def leave(self, say: Callable[[str], None]) -> None:
        """Removes this run's containers. The last user also stops an engine that was started for a release."""
        _remove(self.command, RUN)
        if self.users is None:
            return
        if (pid := _noted("dockerd", STARTED)) is not None:
            if _is_unused(self.users) and not shell.capture([self.command, "ps", "--quiet"]):
                self._stop(pid, say)
            else:
                say("the container engine was started for a release; it stays up for other users")
        self.users.close()

    def _stop(self, pid: int, say: Callable[[str], None]) -> None:
        say(f"stopping the container engine that was started for a release (process {pid})")
        os.kill(pid, signal.SIGTERM)
        for _ in range(START_SECONDS * 10):
            if _program(pid) != "dockerd":
                break
            time.sleep(0.1)
        STARTED.unlink()


def ready(release_folder: Path, say: Callable[[str], None]) -> Engine:
    """Returns an engine that answers, after removing leftovers of an earlier run."""
    label = f"wheelyard.release={release_folder}"
    if os.geteuid() != 0:  # the engine belongs to somebody else, who starts and stops it
        command = answering()
        if command is None:
            raise Problem(ADVICE)
        engine = Engine(command, label, _builder(command, say), None, _address(command))
    else:
        users = USERS.open("ab")
        fcntl.flock(users, fcntl.LOCK_SH)
        try:
            with turn(TURN):
                command = answering() or _start(release_folder / "logs" / "dockerd.log", say)
                engine = Engine(command, label, _builder(command, say), users, _address(command))
        except BaseException:
            users.close()
            raise
    if count := _remove(command, label):  # of a run that was killed together with its guard
        say(f"removed {count} containers left by a stopped run")
    _look_for_room(command, say)
    return engine


def _look_for_room(command: str, say: Callable[[str], None]) -> None:
    """Warns if the disk is nearly full: an image of torch that does not fit fails only after minutes."""
    name = "{{.Store.GraphRoot}}" if command == "podman" else "{{.DockerRootDir}}"
    folder = shell.capture([command, "info", f"--format={name}"])
    try:
        free = shutil.disk_usage(folder or "").free
    except OSError:  # the engine is on another machine
        return
    if free < ROOM:
        say(
            f"only {free >> 30} GiB are free in {folder}; images that are still to be made may not fit. {shell.PRUNE} "
            "removes wheelyard's of all projects, `docker builder prune` their layers"
        )


def is_left_over() -> bool:
    """Whether an engine is running that was started for a release which has ended, and nobody uses it."""
    if os.geteuid() != 0 or _noted("dockerd", STARTED) is None:
        return False
    with USERS.open("ab") as users:
        return _is_unused(users)


def _is_unused(users: IO[bytes]) -> bool:
    """Whether no other release is using the engine; locks out new ones while the file is open."""
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def end_run(run: str) -> None:
    """Cleans up after a killed run: removes its containers, and stops the engine if it was started for the run."""
    if command := answering():
        _remove(command, run)
    if is_left_over():
        with USERS.open("ab") as users:
            fcntl.flock(users, fcntl.LOCK_SH)
            Engine(command or "docker", run, "", users).leave(lambda _: None)


def after_a_kill() -> list[str]:
    """Returns the command that cleans up after this process."""
    code = f"from wheelyard.core import engine; engine.end_run({RUN!r})"
    return [sys.executable, "-I", "-c", code]


def _remove(command: str, label: str) -> int:
    """Removes the containers with a label, running or not, and returns how many there were."""
    asked = [command, "ps", "--all", "--quiet", f"--filter=label={label}"]
    found = (shell.capture(asked) or "").split()
    if found:
        shell.capture([command, "rm", "--force", "--volumes", *found])
    return len(found)


def answering() -> str | None:
    """Returns the command of an engine that is running."""
    return next((c for c in ("docker", "podman") if shell.capture([c, "info"]) is not None), None)


def is_available() -> bool:
    """Whether an engine is running, or would be started here."""
    return answering() is not None or (os.geteuid() == 0 and shutil.which("dockerd") is not None)


def _address(command: str) -> str:
    """Returns the engine's address in docker's current context; empty if DOCKER_HOST is set, which docker prefers."""
    if command != "docker" or os.environ.get("DOCKER_HOST"):
        return ""
    asked = [command, "context", "inspect", "--format", "{{.Endpoints.docker.Host}}"]
    return shell.capture(asked) or ""


def _builder(command: str, say: Callable[[str], None]) -> str:
    """Returns the client that builds images. Their secrets and caches need BuildKit or podman."""
    if command == "podman":
        return command
    for client in CLIENTS:
        if _has_buildkit(client):
            return client
    debian.need(["docker-buildx"], say, NO_BUILDER)
    return command


def _has_buildkit(client: str) -> bool:
    version = shell.capture([client, "version", "--format={{.Client.Version}}"]) or ""
    if (major := version.partition(".")[0]).isdecimal() and int(major) <= LAST_WITHOUT_PLUGIN:
        return True
    return shell.capture([client, "buildx", "version"]) is not None


def _start(log: Path, say: Callable[[str], None]) -> str:
    """Starts an engine, or waits for the one that a killed release was starting."""
    if not shutil.which("dockerd"):
        debian.need(["docker.io", "iptables"], say, ADVICE)
    if not shutil.which("docker"):  # from Debian 13 on, the client is a package of its own
        debian.need(["docker-cli"], say, ADVICE)
    log.parent.mkdir(parents=True, exist_ok=True)
    log.touch()
    pid = _noted("dockerd", STARTED) or _launch(log, say)
    for _ in range(START_SECONDS * 2):
        if shell.capture(["docker", "info"]) is not None:
            return "docker"
        if not _program(pid):
            STARTED.unlink(missing_ok=True)
            raise Problem(f"dockerd does not start:\n{shell.tail(log)}")
        time.sleep(0.5)
    raise Problem(
        f"dockerd (process {pid}) does not answer; stop it and run the same command again"
    )


def _launch(log: Path, say: Callable[[str], None]) -> int:
    """Starts dockerd and returns its process id. dockerd's own shell writes the id down, as this process may be killed
    at any moment."""
    say("starting the container engine (dockerd); it is stopped when the release ends")
    _forget_stale_pids()
    # dockerd outlives the run, and so must not use its temporary folder.
    lasting = {name: value for name, value in os.environ.items() if name != "TMPDIR"}
    with log.open("wb") as output:
        daemon = subprocess.Popen(
            ["sh", "-c", 'echo $$ >"$0" && exec dockerd', STARTED],
            stdout=output, stderr=output, env=lasting, cwd="/", start_new_session=True,
        )  # fmt: skip
    return daemon.pid


def _forget_stale_pids() -> None:
    """Deletes the ids that a killed dockerd left: if another process has one of them now, dockerd refuses to start."""
    for program, file in PIDS.items():
        if _noted(program, file) is None:
            file.unlink(missing_ok=True)


def _noted(program: str, file: Path) -> int | None:
    """Returns the process whose id is in a file, if it still is that program."""
    try:
        pid = int(file.read_text())
    except (OSError, ValueError):
        return None
    return pid if _program(pid) == program else None


def _program(pid: int) -> str:
    """Returns the name of the program that a process runs; empty if it has ended, even if nobody has waited for it.

    /proc/PID/cmdline cannot tell: it is also empty for a moment in every exec.
    """
    try:
        name, _, fields = Path(f"/proc/{pid}/stat").read_text().partition("(")[2].rpartition(") ")
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else name

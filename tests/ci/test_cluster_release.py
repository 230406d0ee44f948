"""A real release on four workers with keys, two of them in a network of their own; machines die on the way."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from clusters import Machines, machines, run
from test_demo_release import copy_of_demo, wheelyard
from wheelyard.core.digest import sha256
from wheelyard.core.job import Job, Needs
from wheelyard.core.record import Record
from wheelyard.run.cluster import keys

pytestmark = [
    pytest.mark.skipif(
        "RELEASE_TESTS" not in os.environ,
        reason="minutes of real container builds; `make test-release` runs them",
    ),
    pytest.mark.skipif(os.geteuid() != 0, reason="makes a network namespace, which needs root"),
]
HERE, NAME = "10.217.0.1", "wheelyard-test"
INSIDE = ["ip", "netns", "exec", NAME]
KINDS = ("build", "repair", "gate", "verify", "smoke")


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
        with machines(folder, "tls", HERE) as started:
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


def test_with_a_worker_killed_in_each_kind_of_job_the_bytes_are_the_same(
    there: Machines, tmp_path: Path
) -> None:
    boxes: dict[str, list[str]] = {"box1": [], "box2": [], "box3": INSIDE, "box4": INSIDE}
    for name, inside in boxes.items():
        there.real_worker(name, inside)
    project = copy_of_demo(tmp_path / "project")
    victims: dict[str, str] = {}
    lines = []
    for line in release(there, project):
        lines.append(line)
        job, _, machine = line.strip().partition(" starts on ")
        kind = job.split("/")[0]
        if machine and kind in KINDS and kind not in victims:
            victims[kind] = machine
            there.kill(machine)
            there.real_worker(machine, boxes[machine])
    assert set(victims) == set(KINDS), "".join(lines)
    assert "went away" in "".join(lines)
    alone = copy_of_demo(tmp_path / "alone")
    for step in ("build", "repair"):
        assert wheelyard(alone, step).returncode == 0
    made = sorted((project / "wheelhouse").glob("demo_ext-*"))
    assert len(made) == 3
    for file in made:
        assert sha256(file) == sha256(alone / "wheelhouse" / file.name), file.name


@pytest.mark.parametrize(("seconds", "goes_elsewhere"), [(60, False), (150, True)])
def test_a_worker_that_is_cut_off(
    there: Machines, tmp_path: Path, seconds: int, goes_elsewhere: bool
) -> None:
    """A silence of a minute is waited out; after a longer one the job goes to another machine."""
    there.worker("far", inside=INSIDE)
    (tmp_path / "wheelhouse").mkdir()
    record = Record(tmp_path / "wheelhouse")
    begun = tmp_path / "begun"
    do = f"import time; open({str(begun)!r}, 'w').close(); time.sleep(20); facts['done'] = True"

    def interrupt() -> None:
        while not begun.exists():
            time.sleep(0.1)
        with cut_off():
            if goes_elsewhere:
                there.worker("near")
            time.sleep(seconds)

    helper = threading.Thread(target=interrupt)
    helper.start()
    run(there, record, Job("build", "x", Needs(), {"do": do}))
    helper.join()
    machine = record.jobs["build/x"]["facts"]["ran"]["machine"]
    assert machine == ("near" if goes_elsewhere else "far")

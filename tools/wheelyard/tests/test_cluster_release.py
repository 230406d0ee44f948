"""Tests real releases on four workers with keys, two of them in a network of their own: the bytes are those of one
machine, even if machines die on the way. All of it is on this machine: the other network is a namespace connected by a
cable."""

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from clusters import Machines, machines, run
from demo_project import copy_of_demo
from repository import ROOT, git, real_release, wait_until, wheelyard
from wheelyard.core.digest import sha256
from wheelyard.core.job import Job, Needs
from wheelyard.core.record import Record
from wheelyard.run.cluster import keys

HERE, NAME = "10.217.0.1", "wheelyard-test"
INSIDE = ["ip", "netns", "exec", NAME]
BOXES: dict[str, list[str]] = {"box1": [], "box2": [], "box3": INSIDE, "box4": INSIDE}
KINDS = ("build", "repair", "gate", "verify", "smoke")
TORCHES = ("2.10", "2.11", "2.12", "2.13", "2.14", "2.15")
PYTHONS = ("3.11", "3.13")
pytestmark = [
    real_release(large=True),
    pytest.mark.skipif(os.geteuid() != 0, reason="makes a network namespace, which needs root"),
]


def ip(words: str, *, inside: bool = False) -> None:
    subprocess.run([*(INSIDE if inside else []), "ip", *words.split()], check=True)


@pytest.fixture
def there(tmp_path: Path) -> Iterator[Machines]:
    """Yields a scheduler with keys, and a network namespace whose only connection to it is a cable."""
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
    """Keeps every packet of the namespace from arriving anywhere."""
    ip("link set wheelyard1 down", inside=True)
    try:
        yield
    finally:
        ip("link set wheelyard1 up", inside=True)


def release(there: Machines, project: Path) -> Iterator[str]:
    """Yields the lines of a release on the cluster, as they come."""
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


def made(project: Path) -> dict[str, str]:
    return {file.name: sha256(file) for file in (project / "wheelhouse").glob("[!.]*")}


def made_alone(project: Path) -> dict[str, str]:
    """Builds the same sources on this machine without a cluster; returns the files."""
    for step in ("build", "repair"):
        done = wheelyard(project, step)
        assert done.returncode == 0, done.stdout + done.stderr
    return made(project)


def test_with_a_worker_killed_in_each_kind_of_job_the_bytes_are_the_same(
    there: Machines, tmp_path: Path
) -> None:
    for name, inside in BOXES.items():
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
            there.real_worker(machine, BOXES[machine])
    assert set(victims) == set(KINDS), "".join(lines)
    assert "went away" in "".join(lines)
    assert len(made(project)) == 3
    assert made(project) == made_alone(copy_of_demo(tmp_path / "alone"))


@pytest.mark.parametrize(("seconds", "goes_elsewhere"), [(60, False), (150, True)])
def test_a_worker_that_is_cut_off(
    there: Machines, tmp_path: Path, seconds: int, goes_elsewhere: bool
) -> None:
    """A silence of a minute is waited out; after a longer one the job goes to another machine."""
    there.worker("far", inside=INSIDE)
    (tmp_path / "release").mkdir()
    record = Record(tmp_path / "release")
    begun = tmp_path / "begun"
    do = f"import time; open({str(begun)!r}, 'w').close(); time.sleep(20)"

    def interrupt() -> None:
        wait_until(begun.exists)
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


# --- Large releases: `make test-cluster` ----------------------------------------------------------


def demo_for_each(folder: Path) -> Path:
    """Makes the demo project, with a wheel for each of six torches and two Pythons."""
    project = copy_of_demo(folder)
    matrix = project / "ci/matrix.toml"
    text = matrix.read_text()
    tables = "".join(
        f'[torch."{torch}"]\ncuda = ["cpu"]\npypi = {{ x86_64 = "cpu", aarch64 = "cpu" }}\n'
        for torch in TORCHES
    )
    text = re.sub(r'\[torch\."2\.10"\]\n.*\n.*\n', lambda _: tables, text)
    text = text.replace('["3.11", "3.12"]', str(list(PYTHONS)))
    matrix.write_text(text.replace('default = "universal"', 'default = "each"'))
    git(project, "commit", "--all", "--quiet", "--message=each")
    return project


def clone_of_this_repository(folder: Path) -> Path:
    git(ROOT, "clone", "--quiet", str(ROOT), str(folder))
    return folder


@pytest.mark.parametrize(
    ("project", "wheels"), [(demo_for_each, 12), (clone_of_this_repository, 2)]
)
def test_large_releases_give_the_bytes_of_one_machine(
    there: Machines, tmp_path: Path, project: Callable[[Path], Path], wheels: int
) -> None:
    alone = made_alone(project(tmp_path / "alone"))
    for name, inside in BOXES.items():
        there.real_worker(name, inside)
    together = project(tmp_path / "together")
    lines = "".join(release(there, together))
    print(lines)
    assert all(f" starts on {name}" in lines for name in BOXES)
    assert len([name for name in made(together) if name.endswith(".whl")]) == wheels
    assert made(together) == alone

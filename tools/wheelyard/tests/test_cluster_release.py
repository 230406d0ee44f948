"""A real release on four workers with keys, two of them in a network of their own; machines die on the way."""

import threading
import time
from pathlib import Path

import pytest
from clusters import Machines, run
from demo_project import copy_of_demo
from repository import wheelyard
from two_networks import BOXES, INSIDE, cut_off, marks, release, there
from wheelyard.core.digest import sha256
from wheelyard.core.job import Job, Needs
from wheelyard.core.record import Record

__all__ = ["there"]  # a fixture
pytestmark = marks
KINDS = ("build", "repair", "gate", "verify", "smoke")


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
    (tmp_path / "release").mkdir()
    record = Record(tmp_path / "release")
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

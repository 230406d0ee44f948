"""Tests what machines offer and jobs ask for: a need that nobody meets is an error, with the command that adds a
worker."""

import platform
from pathlib import Path

import pytest
from repository import program
from wheelyard.core.job import Job, Needs
from wheelyard.run.cluster import offers
from wheelyard.run.cluster.offers import Member

ADDRESS = "tls://host:8786"


def member(**changes: float) -> Member:
    resources = {**offers.offered(2, network=True), **changes}
    return Member("tls://worker:1", "box", 2, {k: v for k, v in resources.items() if v})


def test_this_machine_offers_its_architecture_versions_and_memory() -> None:
    found = offers.offered(4, network=False)
    assert found[platform.machine()] == 4
    assert any(name.startswith("auditwheel ") for name in found)
    assert found[offers.MEMORY] > 0
    assert offers.NETWORK not in found


def test_a_gpu_is_offered_with_its_capability(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path, "nvidia-smi", "echo 9.0; echo 9.0")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    found = offers.offered(4, network=True)
    assert (found["gpu"], found["gpu-9.0"]) == (2, 2)


def test_a_need_that_nobody_offers() -> None:
    job = Job("gpu", "x", Needs("s390x", gpu=True), {})
    said = offers.lacking(job, [member(gpu=0)], ADDRESS)
    assert said
    assert said.startswith("needs s390x and gpu, which no worker offers (box offers")
    assert said.endswith("on such a machine run:\n  wheelyard worker tls://host:8786")
    assert "there is none" in str(offers.lacking(job, [], ADDRESS))


def test_memory_is_counted_out() -> None:
    box = member(**{offers.MEMORY: 9})
    job = Job("build", "x", Needs(memory_gib=4), {})
    assert box.room(offers.wanted(job)) == 2
    assert box.room(offers.wanted(Job("build", "x", Needs(memory_gib=5), {}))) == 1
    said = offers.lacking(Job("build", "x", Needs(memory_gib=10), {}), [box], ADDRESS)
    assert str(said).startswith("needs 10 GiB of memory, which no worker offers (box offers")


def test_a_worker_with_another_version_of_a_tool() -> None:
    job = Job("repair", "x", Needs(), {"tools": {"auditwheel": "0.1"}})
    said = str(offers.lacking(job, [member()], ADDRESS))
    assert "needs auditwheel 0.1, which box does not have" in said
    assert "pip install 'wheelyard[cluster]==" in said


def test_versions_are_not_shown_to_people() -> None:
    assert "auditwheel" not in offers.shown(member().resources)
    assert "GiB" in offers.shown(member().resources)

"""Tests that wheelhouse/ has the distributions of a release, and nothing else."""

import subprocess
import sys
from pathlib import Path

from demo_wheel import make_wheel
from recorded import failed, passed
from wheelyard.core.record import Record
from wheelyard.plan.plan import Plan
from wheelyard.run import wheelhouse


def made(plan: Plan, folder: Path, version: str) -> Path:
    return make_wheel(folder / version, plan.project.normalised, version)


def shown(plan: Plan) -> list[str]:
    """Returns the files that a shell finds as wheelhouse/*."""
    return sorted(file.name for file in plan.project.wheelhouse.glob("[!.]*"))


def test_twine_takes_all_that_is_there(plan: Plan, record: Record, tmp_path: Path) -> None:
    wheel = made(plan, tmp_path / "drafts", "1.0")
    passed(record, "repair/x86_64", wheel)
    failed(record, "repair/aarch64", "no compiler")
    wheelhouse.fill(plan, record)
    assert shown(plan) == [wheel.name]
    files = [plan.project.wheelhouse / name for name in shown(plan)]
    subprocess.run([sys.executable, "-m", "twine", "check", *files], check=True)


def test_an_older_release_goes_and_what_is_not_ours_stays(
    plan: Plan, record: Record, tmp_path: Path
) -> None:
    for version in ("1.0", "2.0"):
        passed(record, "repair/x86_64", made(plan, tmp_path / "drafts", version))
        wheelhouse.fill(plan, record)
        (plan.project.wheelhouse / "theirs-1.0-py3-none-any.whl").touch()
    ours = f"{plan.project.normalised}-2.0-py3-none-any.whl"
    assert shown(plan) == sorted([ours, "theirs-1.0-py3-none-any.whl"])


def test_before_anything_is_made_it_is_empty(plan: Plan, record: Record) -> None:
    wheelhouse.fill(plan, record)
    assert shown(plan) == []


def test_one_that_cannot_be_written_is_named(plan: Plan, record: Record, tmp_path: Path) -> None:
    passed(record, "repair/x86_64", made(plan, tmp_path / "drafts", "1.0"))
    plan.project.wheelhouse.write_text("a file")
    said = wheelhouse.fill(plan, record)
    assert said.startswith(f"{plan.project.wheelhouse} cannot be written (Not a directory); ")
    assert said.endswith(f"the distributions are in {record.folder}")

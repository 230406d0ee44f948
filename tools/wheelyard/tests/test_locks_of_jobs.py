"""The jobs that sign and upload have few packages, of a lock of their own: all that they run works with those alone."""

import subprocess
import sys

import pytest
from repository import ROOT

# What each job of release.yml with that lock does: it plans the whole release, for both indexes, then runs its step.
RUN = """
import re, runpy, sys
from importlib.metadata import packages_distributions
from pathlib import Path
lock, base, step, program, word = sys.argv[1:]
pinned = re.findall(r"^([\\w-]+)==", Path(f"ci/{lock}.lock").read_text(), re.MULTILINE)
named = {re.sub("[-_.]+", "-", name).lower() for name in ("wheelyard", *pinned)}
for module, owners in packages_distributions().items():
    if named.isdisjoint(re.sub("[-_.]+", "-", owner).lower() for owner in owners):
        sys.modules[module] = None
from wheelyard import cli, steps
from wheelyard.plan import plan as planning
from wheelyard.plan.plan import INDEXES, Options
for index in INDEXES:
    plan = planning.load(Options(base=base, place="github", index=index), Path.cwd())
    assert steps.planned(plan).jobs
steps.module(step)
cli._both_indexes(plan)
sys.argv = [program, word]
runpy.run_module(program, run_name="__main__", alter_sys=True)
"""
JOBS = {
    "sign": ("attest", "pypi_attestations", "--help"),
    "publish": ("publish", "twine", "--version"),
}


@pytest.mark.parametrize("base", ["debian", "pypa", "auto"])
@pytest.mark.parametrize("lock", JOBS)
def test_a_job_needs_no_more_than_its_lock(lock: str, base: str) -> None:
    command = [sys.executable, "-c", RUN, lock, base, *JOBS[lock]]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

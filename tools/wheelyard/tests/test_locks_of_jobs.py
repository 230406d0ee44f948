"""The jobs that sign and upload have few packages, of a lock of their own: all that they run works with those alone."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from repository import ROOT

pytestmark = pytest.mark.skipif(
    "ONLINE" not in os.environ, reason="it installs the locks from PyPI: ONLINE=1"
)
# What each job of release.yml with that lock does: it plans the whole release, for both indexes, then runs its step.
RUN = """
import sys
from pathlib import Path
from wheelyard import cli, steps
from wheelyard.plan import plan as planning
from wheelyard.plan.plan import INDEXES, Options
base, *names = sys.argv[1:]
for index in INDEXES:
    plan = planning.load(Options(base=base, place="github", index=index), Path.cwd())
    assert steps.planned(plan).jobs
for name in names:
    steps.module(name)
cli._both_indexes(plan)
"""
STEPS = {"sign": ["attest"], "publish": ["publish"]}
PROGRAMS = {"sign": ["pypi_attestations", "--help"], "publish": ["twine", "--version"]}


@pytest.fixture(scope="module", params=STEPS)
def lock(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def python(lock: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with what the lock pins, and nothing else."""
    folder = tmp_path_factory.mktemp(lock) / "venv"
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    install = [folder / "bin/pip", "install", "--quiet", "--no-deps", "--require-hashes", "-r"]
    subprocess.run([*install, ROOT / f"ci/{lock}.lock"], check=True)
    return folder / "bin/python"


@pytest.mark.parametrize("base", ["debian", "pypa", "auto"])
def test_a_job_needs_no_more_than_its_lock(lock: str, base: str, python: Path) -> None:
    from_the_tree = {**os.environ, "PYTHONPATH": str(ROOT / "tools/wheelyard")}
    for words in (["-c", RUN, base, *STEPS[lock]], ["-m", *PROGRAMS[lock]]):
        command = [python, *words]
        done = subprocess.run(command, cwd=ROOT, env=from_the_tree, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

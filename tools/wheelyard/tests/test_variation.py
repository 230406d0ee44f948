"""The same project in random environments: the same inputs, and the same bytes from them.

VARIATIONS=200 asks for that many. Where real releases are asked for, the sdist and the wheel are built in containers
each time; else once for all, here. `pytest -s` shows each.
"""

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from demo_project import copy_of_demo
from variation import KNOWN, Environment, draw, set_up
from wheelyard import steps
from wheelyard.core.record import Record, load
from wheelyard.plan import plan as planning
from wheelyard.plan.plan import Options
from wheelyard.steps import build

COUNT = int(os.environ.get("VARIATIONS", "5"))
FROM_SCRATCH = bool(os.environ.get("RELEASE_TESTS"))
HERE = platform.machine()
RUN = """
import sys
from wheelyard import cli
for step in sys.argv[1:]:
    sys.argv = ["wheelyard", step, "--wheel", {here!r}]
    if cli.main():
        sys.exit(f"{{step}} failed")
"""
Results = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo project, with its sdist and wheel as the step build leaves them."""
    project = copy_of_demo(tmp_path_factory.mktemp("built") / "project")
    if FROM_SCRATCH:
        return project
    made = project.parent / "made"
    told = {**os.environ, "SOURCE_DATE_EPOCH": "1580601600", "DEMO_TARGET": HERE}
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", made, project]
    subprocess.run(command, check=True, capture_output=True, env=told)
    shutil.rmtree(project / "demo_ext.egg-info")
    shutil.rmtree(project / "build", ignore_errors=True)
    (project / "build/release").mkdir(parents=True)
    record = Record(project / "build/release")
    plan = planning.load(Options(wanted=(HERE,)), project)
    for job in steps.planned(plan, "build").of_step("build"):
        (out := project.parent / job.unit).mkdir()
        if job.unit == "sdist":
            (sdist,) = made.glob("*.tar.gz")
            build.normalise(sdist, out / sdist.name, 1580601600)
        else:
            (out / "built" / HERE).mkdir(parents=True)
            shutil.copy(next(made.glob("*.whl")), out / "built" / HERE)
        record.passed(job, record.resolve(job), out, {}, 1.0)
    return project


def run_in(around: Environment, built: Path, folder: Path) -> Results:
    """Builds if asked to, repairs and gates; returns the inputs and outputs of each job."""
    project, home = folder / around.name, folder / "home of é"
    home.mkdir(parents=True)
    shutil.copytree(built, project, symlinks=True)
    given = set_up(around, home, project)
    given["XDG_CACHE_HOME"] = str(Path.home() / ".cache")  # the images that were made here
    words = [*(["build"] if FROM_SCRATCH else []), "repair", "gate"]
    done = subprocess.run(
        [sys.executable, "-P", "-c", RUN.format(here=HERE), *words], cwd=project, env=given,
        umask=around.umask, capture_output=True, text=True, errors="replace",
        preexec_fn=lambda: os.sched_setaffinity(0, range(around.cores)),
    )  # fmt: skip
    if done.returncode:
        return {"failed": {"said": (done.stdout + done.stderr)[-2000:]}}
    _, jobs = load(project / "build/release/release.json")
    shutil.rmtree(folder)
    return {n: {key: job[key] for key in ("inputs", "outputs")} for n, job in jobs.items()}


def test_the_same_bytes_from_the_same_inputs(built: Path, tmp_path: Path) -> None:
    plain = run_in(Environment("plain"), built, tmp_path / "plain")
    assert {"repair", "gate"} <= {name.split("/")[0] for name in plain}, plain
    differences = []
    for number, around in enumerate([*KNOWN, *map(draw, range(1, COUNT + 1))]):
        found = run_in(around, built, tmp_path / str(number))
        wrong = [n for n in plain if found.get(n) != plain[n]]
        print(f"{around.describe()}\n  -> {found if 'failed' in found else wrong or 'the same'}")
        differences += [f"{wrong} in {around.describe()}"] * bool(wrong)
    assert differences == []

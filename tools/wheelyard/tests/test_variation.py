"""The same project in random environments: the same inputs, and the same bytes from them.

VARIATIONS=200 asks for that many. Where real releases are asked for, the sdist and the wheel are built in containers,
and anew in every tenth environment; else once for all, here. `pytest -s` shows each.
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
IN_CONTAINERS = bool(os.environ.get("RELEASE_TESTS"))
BUILT_EVERY = 10
HERE = platform.machine()
RUN = """
import sys
from wheelyard import cli
for step in sys.argv[1:]:
    sys.argv = ["wheelyard", step, "--wheel", {here!r}]
    if cli.main():
        sys.exit(f"{{step}} failed")
"""
# What keeps the known faults away, each as lines of wheelyard and what they would be without it.
CURES = {
    "umask": {
        "cli.py": ("    os.umask(UMASK)\n", ""),
        "core/shell.py": ("umask=environment.UMASK", "umask=-1"),
        "core/workspace.py": ("target.chmod(", "(lambda mode: None)("),
        "steps/build.py": ("0o755 if member.mode & 0o100 else 0o644", "member.mode"),
        "tools/wheelfile.py": ("EXECUTABLE if mode & 0o111 else FILE", "mode or FILE"),
    },
    "cibuildwheel's settings": {"core/environment.py": ("{**places,", "{**os.environ, **places,")},
}
Results = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo project, with its sdist and wheel as the step build leaves them."""
    project = copy_of_demo(tmp_path_factory.mktemp("built") / "project")
    if IN_CONTAINERS:
        run_steps(Environment("plain"), project, project.parent / "home", ["build"])
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


def run_in(
    around: Environment, built: Path, folder: Path, *, anew: bool = False, package: str = ""
) -> Results:
    """Repairs and gates what is built, or what is built `anew`; returns the inputs and outputs of each job. `package`
    is the folder of a changed wheelyard."""
    project = folder / around.name
    shutil.copytree(built, project, symlinks=True)
    if anew:
        shutil.rmtree(project / "build")
    words = [*(["build"] if anew else []), "repair", "gate"]
    try:
        run_steps(around, project, folder / "home of é", words, package)
    except subprocess.CalledProcessError as failed:
        return {"failed": {"said": failed.stdout[-2000:]}}
    _, jobs = load(project / "build/release/release.json")
    shutil.rmtree(folder)
    return {n: {key: job[key] for key in ("inputs", "outputs")} for n, job in jobs.items()}


def run_steps(
    around: Environment, project: Path, home: Path, words: list[str], package: str = ""
) -> None:
    home.mkdir(parents=True)
    given = set_up(around, home, project)
    given["XDG_CACHE_HOME"] = str(Path.home() / ".cache")  # the images that were made here
    if package:
        given["PYTHONPATH"] = package
    subprocess.run(
        [sys.executable, "-P", "-c", RUN.format(here=HERE), *words], cwd=project, env=given, check=True,
        umask=around.umask, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
        preexec_fn=lambda: os.sched_setaffinity(0, range(around.cores)),
    )  # fmt: skip


def test_the_same_bytes_from_the_same_inputs(built: Path, tmp_path: Path) -> None:
    plain = run_in(Environment("plain"), built, tmp_path / "plain", anew=IN_CONTAINERS)
    assert {"repair", "gate"} <= {name.split("/")[0] for name in plain}, plain
    differences = []
    for number, around in enumerate([*KNOWN, *map(draw, range(1, COUNT + 1))]):
        anew = IN_CONTAINERS and (number < len(KNOWN) or number % BUILT_EVERY == 0)
        found = run_in(around, built, tmp_path / str(number), anew=anew)
        wrong = [n for n in plain if found.get(n) != plain[n]]
        print(f"{around.describe()}{', built anew' if anew else ''}")
        print(f"  -> {found if 'failed' in found else wrong or 'the same'}", flush=True)
        differences += [f"{wrong} in {around.describe()}"] * bool(wrong)
    assert differences == []


@pytest.mark.skipif(not IN_CONTAINERS, reason="they change builds, in containers: RELEASE_TESTS=1")
@pytest.mark.parametrize("what", CURES)
def test_without_its_cure_a_known_fault_is_found(what: str, built: Path, tmp_path: Path) -> None:
    package = tmp_path / "wheelyard"
    shutil.copytree(Path(steps.__file__).parents[1], package)
    for file, (old, new) in CURES[what].items():
        text = (package / file).read_text()
        assert text.count(old) == 1, f"{file} has no `{old}`, or several"
        (package / file).write_text(text.replace(old, new))

    def run(around: Environment, name: str) -> Results:
        return run_in(around, built, tmp_path / name, anew=True, package=str(tmp_path))

    plain = run(Environment("plain"), "plain")
    assert "failed" not in plain, plain
    for number, around in enumerate(around for around in KNOWN if around.what == what):
        found = run(around, str(number))
        print(around.what, [n for n, job in plain.items() if found.get(n) != job])
        assert any(found.get(n) != job for n, job in plain.items()), around.describe()

"""Tests the same project in odd environments: the same inputs, and the same bytes from them.

If real releases are requested, the sdist and the wheel are built in containers, and again in environments that once
changed them; otherwise once for all, on this machine.
"""

import os
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from demo_project import copy_of_demo
from wheelyard import steps
from wheelyard.core.record import Record, load
from wheelyard.plan import plan as planning
from wheelyard.plan.plan import Options
from wheelyard.steps import build

# Variables that the programs of a release document, with values that would change what they do. Which variables reach
# a program does not depend on their names (core/test_environment.py), so each program has one or two here.
VARIABLES: dict[str, str] = {
    "TZ": "Asia/Kathmandu",
    "LANG": "tr_TR.UTF-8",
    "SOURCE_DATE_EPOCH": "1",
    "CIBW_ENVIRONMENT_LINUX": "DEMO_TARGET=riscv64",
    "CIBW_BEFORE_BUILD_LINUX": "printf 'EVIL = 1\\n' >>{project}/demo_ext/__init__.py",
    "CIBW_SKIP": "*",
    "AUDITWHEEL_PLAT": "linux_aarch64",
    "AUDITWHEEL_ZIP_COMPRESSION_LEVEL": "0",
    "PIP_INDEX_URL": "http://127.0.0.1:9/simple",
    "PYTHONHASHSEED": "1",
    "TWINE_REPOSITORY_URL": "http://127.0.0.1:9/",
    "DIST_EXTRA_CONFIG": "/nonexistent.cfg",
    "SETUPTOOLS_SCM_PRETEND_VERSION": "9.9",
    "CFLAGS": "-DEVIL -g3",
    "LDFLAGS": "-Wl,--build-id=0x1234",
    "NVCC_APPEND_FLAGS": "-DEVIL",
    "TORCH_CUDA_ARCH_LIST": "5.0",
    "MAX_JOBS": "1",
    "MAKEFLAGS": "-j99 -i",
    "CMAKE_ARGS": "-DEVIL=1",
    "CCACHE_PREFIX": "false",
    "TAR_OPTIONS": "--mode=a+rwx",
    "GIT_CONFIG_PARAMETERS": "'core.fileMode=false'",
    "GIT_INDEX_FILE": "/nonexistent",
    "DOCKER_DEFAULT_PLATFORM": "linux/riscv64",
    "DEMO_TARGET": "riscv64",
    "COLUMNS": "7",
    "LD_BIND_NOW": "1",
}
# Files below the user's home, which the same programs read.
AT_HOME = {
    ".config/pip/pip.conf": "[global]\nindex-url = http://127.0.0.1:9/simple\nno-binary = :all:\n",
    ".pypirc": "[distutils]\nindex-servers = elsewhere\n[elsewhere]\nrepository = http://127.0.0.1:9\n",
    ".pydistutils.cfg": "[bdist_wheel]\nplat_name = linux_riscv64\n[build]\ndebug = 1\n",
    ".gitconfig": "[core]\n autocrlf = input\n fileMode = false\n[status]\n showUntrackedFiles = no\n",
    ".config/ccache/ccache.conf": "sloppiness = include_file_mtime\n",
    ".docker/config.json": '{"proxies": {"default": {"httpProxy": "http://127.0.0.1:9"}}}',
    ".config/check-wheel-contents.toml": "[tool.check-wheel-contents]\nselect = []\n",
}
# Modules that `python -m`, or a program that looks in its current folder first, would import instead of the real ones.
PLANTED = ("twine", "auditwheel", "check_wheel_contents", "cibuildwheel", "build", "elftools")
EVIL = "raise SystemExit('a planted module was run')\n"


@dataclass
class Environment:
    """The environment of one run."""

    name: str = "project"  # of the project's folder
    umask: int = 0o022
    variables: dict[str, str] = field(default_factory=dict)
    is_odd: bool = False  # has all files at home, all planted modules and one core


# Environments that once changed a wheel but not its inputs.
KNOWN = [
    *(Environment(umask=umask) for umask in (0o002, 0o027, 0o077)),
    Environment(variables={n: value for n, value in VARIABLES.items() if n.startswith("CIBW_B")}),
]
ODD = [
    Environment(name, umask, VARIABLES, is_odd=True)
    for name, umask in {
        "projet é プロジェクト": 0o077,
        "it's x;y": 0o002,
        "100% a&b [x]": 0,
    }.items()
]


def set_up(around: Environment, home: Path, project: Path) -> dict[str, str]:
    """Writes the files; returns the environment."""
    if around.is_odd:
        for file, text in AT_HOME.items():
            (home / file).parent.mkdir(parents=True, exist_ok=True)
            (home / file).write_text(text)
        with (project / ".git/info/exclude").open("a") as ignored:
            ignored.writelines(f"/{module}.py\n" for module in PLANTED)
        site = home / ".local/lib/python3.11/site-packages"
        site.mkdir(parents=True)
        for place in (project, site):
            for module in PLANTED:
                (place / f"{module}.py").write_text(EVIL)
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    return {**kept, "HOME": str(home), **around.variables}


# --- Releases in them -----------------------------------------------------------------------------

IN_CONTAINERS = bool(os.environ.get("RELEASE_TESTS"))
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
    """Makes the demo project, with its sdist and wheel as the step build leaves them."""
    project = copy_of_demo(tmp_path_factory.mktemp("built") / "project")
    if IN_CONTAINERS:
        run_steps(Environment(), project, project.parent / "home", ["build"])
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


def run_in(around: Environment, built: Path, folder: Path, *, anew: bool) -> Results:
    """Repairs and gates what is built, or builds it `anew` first; returns the inputs and outputs of each job."""
    project = folder / around.name
    shutil.copytree(built, project, symlinks=True)
    if anew:
        shutil.rmtree(project / "build")
    words = [*(["build"] if anew else []), "repair", "gate"]
    try:
        run_steps(around, project, folder / "home of é", words)
    except subprocess.CalledProcessError as failed:
        return {"failed": {"said": failed.stdout[-2000:]}}
    _, jobs = load(project / "build/release/release.json")
    shutil.rmtree(folder)
    return {n: {key: job[key] for key in ("inputs", "outputs")} for n, job in jobs.items()}


def run_steps(around: Environment, project: Path, home: Path, words: list[str]) -> None:
    home.mkdir(parents=True)
    given = set_up(around, home, project)
    subprocess.run(
        [sys.executable, "-P", "-c", RUN.format(here=HERE), *words], cwd=project, env=given, check=True,
        umask=around.umask, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
        preexec_fn=lambda: around.is_odd and os.sched_setaffinity(0, [0]),
    )  # fmt: skip


def test_the_same_bytes_from_the_same_inputs(built: Path, tmp_path: Path) -> None:
    plain = run_in(Environment(), built, tmp_path / "plain", anew=IN_CONTAINERS)
    assert {"repair", "gate"} <= {name.split("/")[0] for name in plain}, plain
    for number, around in enumerate([*KNOWN, *ODD]):
        anew = IN_CONTAINERS and around in KNOWN
        assert run_in(around, built, tmp_path / str(number), anew=anew) == plain, around

"""Tests the same project in random environments: the same inputs, and the same bytes from them.

VARIATIONS=200 asks for that many. If real releases are requested, the sdist and the wheel are built in containers, and
again in every tenth environment; otherwise once for all, on this machine. `pytest -s` shows each.
"""

import os
import platform
import random
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

# Variables that the programs of a release document, with values that would change what they do.
VARIABLES: dict[str, list[str]] = {
    "TZ": ["Asia/Kathmandu", "America/St_Johns", "UTC+13"],
    "LANG": ["tr_TR.UTF-8", "C", "ja_JP.eucJP"],
    "LC_ALL": ["C", "C.UTF-8", "POSIX"],
    "SOURCE_DATE_EPOCH": ["1", "1700000000"],
    "CIBW_ENVIRONMENT_LINUX": ["DEMO_TARGET=riscv64", "CFLAGS=-DEVIL"],
    "CIBW_BEFORE_BUILD_LINUX": ["printf 'EVIL = 1\\n' >>{project}/demo_ext/__init__.py"],
    "CIBW_BEFORE_ALL": ["touch /evil"],
    "CIBW_CONFIG_SETTINGS": ["--global-option=--quiet"],
    "CIBW_TEST_COMMAND": ["false"],
    "CIBW_SKIP": ["*"],
    "CIBW_BUILD_VERBOSITY": ["3"],
    "CIBW_DEPENDENCY_VERSIONS": ["latest"],
    "CIBW_CACHE_PATH": ["/nonexistent"],
    "AUDITWHEEL_PLAT": ["linux_aarch64", "manylinux_2_99_aarch64"],
    "AUDITWHEEL_ZIP_COMPRESSION_LEVEL": ["0", "9"],
    "AUDITWHEEL_EXCLUDE": ["*"],
    "PIP_NO_BINARY": [":all:"],
    "PIP_INDEX_URL": ["http://127.0.0.1:9/simple"],
    "PIP_TARGET": ["/nonexistent"],
    "PIP_REQUIRE_VIRTUALENV": ["1"],
    "PYTHONHASHSEED": ["1", "77"],
    "PYTHONWARNINGS": ["default"],
    "PYTHONDONTWRITEBYTECODE": ["1"],
    "TWINE_REPOSITORY": ["elsewhere"],
    "TWINE_REPOSITORY_URL": ["http://127.0.0.1:9/"],
    "TWINE_CERT": ["/nonexistent"],
    "DIST_EXTRA_CONFIG": ["/nonexistent.cfg"],
    "SETUPTOOLS_USE_DISTUTILS": ["stdlib"],
    "SETUPTOOLS_SCM_PRETEND_VERSION": ["9.9"],
    "CC": ["false"],
    "CFLAGS": ["-DEVIL -g3"],
    "CPPFLAGS": ["-DEVIL"],
    "LDFLAGS": ["-Wl,--build-id=0x1234"],
    "NVCC_APPEND_FLAGS": ["-DEVIL"],
    "NVCC_PREPEND_FLAGS": ["-DEVIL"],
    "TORCH_CUDA_ARCH_LIST": ["5.0"],
    "CUDAARCHS": ["50"],
    "CUDA_HOME": ["/nonexistent"],
    "FORCE_CUDA": ["0"],
    "MAX_JOBS": ["1", "99"],
    "MAKEFLAGS": ["-j99 -i"],
    "CMAKE_ARGS": ["-DEVIL=1"],
    "CMAKE_BUILD_TYPE": ["Debug"],
    "CCACHE_DIR": ["/nonexistent"],
    "CCACHE_PREFIX": ["false"],
    "SCCACHE_DIR": ["/nonexistent"],
    "TAR_OPTIONS": ["--mode=a+rwx", "--sort=none"],
    "GZIP": ["-1"],
    "ZIPOPT": ["-0"],
    "GIT_AUTHOR_DATE": ["2001-01-01T00:00:00"],
    "GIT_CONFIG_PARAMETERS": ["'core.fileMode=false'"],
    "GIT_INDEX_FILE": ["/nonexistent"],
    "DOCKER_DEFAULT_PLATFORM": ["linux/riscv64"],
    "DOCKER_CONTENT_TRUST": ["1"],
    "BUILDKIT_PROGRESS": ["rawjson"],
    "DEMO_TARGET": ["riscv64"],
    "NO_COLOR": ["1"],
    "FORCE_COLOR": ["1"],
    "COLUMNS": ["7"],
    "EDITOR": ["false"],
    "LD_BIND_NOW": ["1"],
    "MALLOC_PERTURB_": ["165"],
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
PLANTED = (
    "twine",
    "auditwheel",
    "check_wheel_contents",
    "cibuildwheel",
    "wheel",
    "build",
    "elftools",
)
EVIL = "raise SystemExit('a planted module was run')\n"
NAMES = ("project", "a project", "projet é", "プロジェクト", "it's", "x;y", "100%", "a&b", "[x]")


@dataclass
class Environment:
    """The environment of one run."""

    what: str
    name: str = "project"
    umask: int = 0o022
    cores: int = 1
    variables: dict[str, str] = field(default_factory=dict)
    at_home: list[str] = field(default_factory=list)
    planted: list[str] = field(default_factory=list)

    def describe(self) -> str:
        return (
            f"{self.what}: {self.name!r}, umask {self.umask:03o}, {self.cores} cores, "
            f"{self.variables}, {self.at_home}, planted {self.planted}"
        )


# Environments that once changed a wheel but not its inputs.
KNOWN = [
    *(Environment("umask", umask=umask) for umask in (0o002, 0o027, 0o077)),
    Environment(
        "cibuildwheel's settings",
        variables={name: VARIABLES[name][0] for name in VARIABLES if name.startswith("CIBW_B")},
    ),
]


def draw(seed: int) -> Environment:
    """Returns a random environment, in which each thing is there or not."""
    chance = random.Random(seed)
    names = [name for name in VARIABLES if chance.random() < 0.4]
    return Environment(
        f"seed {seed}",
        chance.choice(NAMES),
        chance.choice([0o022, 0o002, 0o027, 0o077, 0o000]),
        chance.randint(1, os.cpu_count() or 1),
        {name: chance.choice(VARIABLES[name]) for name in names},
        [file for file in AT_HOME if chance.random() < 0.5],
        [name for name in PLANTED if chance.random() < 0.5],
    )


def set_up(around: Environment, home: Path, project: Path) -> dict[str, str]:
    """Writes the files; returns the environment."""
    for file in around.at_home:
        (home / file).parent.mkdir(parents=True, exist_ok=True)
        (home / file).write_text(AT_HOME[file])
    for module in around.planted:
        for folder in (project, home / ".local/lib/python3.11/site-packages"):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{module}.py").write_text(EVIL)
    with (project / ".git/info/exclude").open("a") as ignored:
        ignored.writelines(f"/{module}.py\n" for module in around.planted)
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    return {**kept, "HOME": str(home), **around.variables}


# --- Releases in them -----------------------------------------------------------------------------

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
# Code that prevents the known faults, each as lines of wheelyard and what they would be without the cure.
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
    """Makes the demo project, with its sdist and wheel as the step build leaves them."""
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
    """Repairs and gates what is built, or builds it `anew` first; returns the inputs and outputs of each job. `package`
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

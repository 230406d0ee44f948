"""Tests the tools as a user gets them: installed by name into an empty environment, and used with nothing of ours
around.

While the project in ordinary/ is released, this repository is hidden by an empty folder. The project is a CUDAExtension
with pybind, a version from git's tags, a module with another name than the distribution, and a dependency beyond torch;
each of its four cells gets a wheel.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from demo_project import copy_of_demo, record
from repository import ROOT, committed, git, outer_environment, real_release
from tools.release import wheels as tool_wheels
from wheelyard.core.digest import sha256
from wheelyard.tools import index
from wheelyard.tools.index import Index

pytestmark = real_release(large=True)
TORCHES = {"2.12": "cu130", "2.15": "cu132"}
CELLS = [(torch, python) for torch in TORCHES for python in ("3.11", "3.13")]
# A cache that outlives the test: the compilers get the same input each time.
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "wheelyard-tests"


@pytest.fixture(scope="module")
def programs(new_index: Callable[[str], Index], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the folder of the programs that `pip install wheelyard` brings, from an index that has the tools'
    wheels."""
    folder = tmp_path_factory.mktemp("tools")
    where = new_index("tools")
    tools = tool_wheels.make(folder)
    stand_in = {"INDEX_TESTPYPI": where.upload, "TWINE_USERNAME": index.USER}
    made = " ".join(f"{sha256(wheel)} {wheel.name}" for wheel in tools.values())
    password = {"TWINE_PASSWORD": where.password or "", "DIGESTS": made}
    # As tools.yml does.
    upload = [sys.executable, "-m", "tools.release.publish", "testpypi", folder]
    subprocess.run(upload, cwd=ROOT, env={**os.environ, **stand_in, **password}, check=True)
    venv.create(folder / "venv", with_pip=True)
    found = folder / "venv/bin"
    command = [found / "python", "-m", "pip", "install", "--quiet", "--report", folder / "report"]
    subprocess.run([*command, "--extra-index-url", where.simple, "wheelyard"], check=True)
    taken = [
        entry["download_info"]["url"].split("/")[-1].partition("#")[0]
        for entry in json.loads((folder / "report").read_text())["install"]
        if entry["download_info"]["url"].startswith(where.upload)
    ]
    assert sorted(taken) == sorted(wheel.name for wheel in tools.values())
    return found


@pytest.fixture(scope="module")
def environment(programs: Path) -> dict[str, str]:
    """Returns this machine's environment, without what belongs to this checkout or to another Python environment."""
    clean = {
        n: v
        for n, v in outer_environment().items()
        if not n.startswith(("PYTHON", "VIRTUAL", "WHEEL"))
    }
    places = [p for p in clean["PATH"].split(os.pathsep) if not Path(p).is_relative_to(ROOT)]
    return clean | {"PATH": os.pathsep.join([str(programs), *places])}


@pytest.fixture(scope="module")
def project(
    programs: Path, environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Releases the project in ordinary/, in a git repository of its own, with a tag."""
    folder = tmp_path_factory.mktemp("elsewhere") / "project"
    shutil.copytree(Path(__file__).with_name("ordinary"), folder)
    (folder / ".gitignore").write_text("/build/\n")
    git(committed(folder), "tag", "-m", "first", "v1.2.0")
    hide = f'mount -t tmpfs none {shlex.quote(str(ROOT))} && exec "$@"'
    alone = ["unshare", "--mount", "sh", "-c", hide, "sh", str(programs / "wheelyard")]
    words = [*alone, "release", "--cache", str(CACHE)]
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def wheels(project: Path) -> dict[tuple[str, str], Path]:
    """Returns the wheel of each cell, by its name."""
    found = {}
    for torch, python in CELLS:
        tag = "cp" + python.replace(".", "")
        start = f"ordinary_ext-1.2.0+{TORCHES[torch]}torch{torch}-{tag}-{tag}-manylinux_2_"
        (found[torch, python],) = (project / "wheelhouse").glob(
            f"{start}*_{os.uname().machine}.whl"
        )
    return found


def test_this_repository_is_hidden(environment: dict[str, str], programs: Path) -> None:
    """Otherwise the release could have used it."""
    hide = f"mount -t tmpfs none {shlex.quote(str(ROOT))} && ls -A {shlex.quote(str(ROOT))}"
    seen = subprocess.run(["unshare", "--mount", "sh", "-c", hide], capture_output=True, check=True)
    assert seen.stdout == b""
    where = [programs / "python", "-P", "-c", "import wheelyard; print(wheelyard.__file__)"]
    said = subprocess.run(where, env=environment, capture_output=True, text=True, check=True)
    assert Path(said.stdout).is_relative_to(programs.parent)


def test_each_cell_has_its_wheel_and_real_pip_takes_it(project: Path) -> None:
    made, done = wheels(project), record(project)
    assert sorted((project / "wheelhouse").glob("*.whl")) == sorted(made.values())
    for (torch, python), wheel in made.items():
        taken = done[f"install/embedded-torch{torch}-python{python}"]["facts"]["verdict"]
        assert taken == f"pip took {wheel.name}"


def test_a_wheel_asks_for_its_torch_and_keeps_its_other_requirements(project: Path) -> None:
    assert (project / "wheelhouse/ordinary_ext-1.2.0.tar.gz").exists(), "the version of the tag"
    for (torch, _), wheel in wheels(project).items():
        (found,) = metadata.distributions(path=[str(wheel)])
        assert sorted(found.requires or []) == ["einops>=0.8", f"torch=={torch}.*"]


def test_each_wheel_ran_beside_its_torch_in_a_fresh_container(project: Path) -> None:
    done = record(project)
    assert {job["verdict"] for job in done.values()} == {"passed"}
    for torch, python in CELLS:
        (name,) = (n for n in done if re.match(rf"verify/.*-torch{torch}-python{python}$", n))
        assert "6 passed" in done[name]["facts"]["verdict"], name


def test_what_builds_a_wheel_is_what_its_torch_requires(project: Path) -> None:
    """torch names the versions of setuptools and other packages of the build image that it works with."""
    builds = [job for name, job in record(project).items() if re.match(r"build/(?!sdist)", name)]
    images = {job["inputs"]["image"]["tag"] for job in builds}
    assert len(images) == len(CELLS)
    for image in images:
        words = ["docker", "run", "--rm", "--network=none", image, "python", "-m", "pip", "check"]
        checked = subprocess.run(words, capture_output=True, text=True)
        assert checked.returncode == 0, checked.stdout


def test_the_action_sets_up_wheelyard_beside_any_project(tmp_path: Path) -> None:
    """On a runner, the action's tree has a folder of its own, without git's."""
    tree = tmp_path / "_actions/owner/repository/commit"
    tree.mkdir(parents=True)
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, stdout=subprocess.PIPE)
    copy = ["xargs", "-0", "cp", "--parents", f"--target-directory={tree}"]
    subprocess.run(copy, cwd=ROOT, check=True, input=listed.stdout)
    action = tree / ".github/actions/wheelyard"
    (step,) = yaml.safe_load((action / "action.yml").read_text())["runs"]["steps"]
    project = copy_of_demo(tmp_path / "a project")
    told = {**outer_environment(), "GITHUB_ACTION_PATH": str(action)}
    subprocess.run(
        ["bash", "-eo", "pipefail", "-c", step["run"]], cwd=project, check=True, env=told
    )
    for words in (["wheelyard", "plan"], ["wheelscope", "--version"]):
        program = project / ".venv/bin" / words[0]
        subprocess.run([program, *words[1:]], cwd=project, check=True, stdout=subprocess.DEVNULL)
    status = ["git", "status", "--porcelain"]
    assert subprocess.run(status, cwd=project, check=True, stdout=subprocess.PIPE).stdout == b""

"""Rehearses the release workflow of a project made by `wheelyard new`, as an ordinary user who may use the engine: a
dry run without evidence from a GPU, the same with a GPU, and the tag of a release candidate with pasted evidence."""

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from rehearsal import STAND_INS, Failed, Rehearsal
from repository import ROOT, TOOL, git, program, real_release
from test_doctor import GitHub, github
from wheelyard import new
from wheelyard.core.digest import sha256
from wheelyard.steps import smoke
from wheelyard.tools import index
from wheelyard.tools.index import Index

__all__ = ["github"]
pytestmark = real_release()
HERE = platform.machine()
NOBODY = 65534
SOCKET = Path("/var/run/docker.sock")
VERSION = "0.1.0rc1"
# Shortens the matrix by what takes minutes but is not the workflow's: GPU targets, torches to link with, cells and
# tests to run.
SHORTER = {f'[torch."2.{minor}"]\n': "" for minor in (11, 12, 13, 14)} | {
    'targets = ["7.0+PTX", "8.0", "9.0+PTX", "10.0", "12.0"]': 'targets = ["7.0+PTX"]',
    ', { torch = "2.15", python = "3.14" }]': "]\ncommand = 'python -m pytest -q -k scale_add tests'",
}


@dataclass
class NewProject(Rehearsal):
    """A rehearsal with the tools of this checkout. If it runs as root, its lines run as nobody in the engine's
    group."""

    gpu: str = ""  # the Python of a machine with a GPU

    def run_line(
        self, name: str, clone: Path, line: str, given: dict[str, str], seconds: float
    ) -> dict[str, str]:
        if line == "make release" and not (clone / ".venv").exists():
            set_up(clone)
        if os.geteuid() == 0:
            subprocess.run(["chown", "--recursive", f"{NOBODY}:{NOBODY}", self.folder], check=True)
            group = SOCKET.stat().st_gid
            user = f"setpriv --reuid={NOBODY} --regid={NOBODY} --groups={group} --inh-caps=-all"
            script = self.folder / "line.sh"
            script.write_text(line)
            line = f"{user} bash --noprofile --norc -eo pipefail {script}"
        return super().run_line(name, clone, line, given, seconds)

    def shell_environment(self, given: dict[str, str], output: Path) -> dict[str, str]:
        told = super().shell_environment(given, output)
        told.pop("TORCH_PYTHON", None)
        stand_in = {"TORCH_PYTHON": self.gpu} if self.gpu else {}
        places = [str(STAND_INS)] if self.gpu else []
        return (
            told | stand_in | {"PATH": os.pathsep.join([*places, "/usr/local/bin:/usr/bin:/bin"])}
        )


def set_up(clone: Path) -> None:
    """Makes what `make env` and `make build/tools` would leave, from this checkout's tools."""
    environment = clone / ".venv"
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    python = shutil.which(version, path="/usr/local/bin:/usr/bin") or sys.executable
    subprocess.run([python, "-m", "venv", "--without-pip", environment], check=True)
    (packages,) = environment.glob("lib/python*/site-packages")
    places = [TOOL, sysconfig.get_path("purelib")]
    (packages / "tools.pth").write_text("".join(f"{place}\n" for place in places))
    (environment / "bin/wheelscope").symlink_to(ROOT / "build/bin/wheelscope")
    for installed in Path(sys.executable).parent.iterdir():
        content, copy = installed.read_bytes(), environment / "bin" / installed.name
        if not copy.exists() and re.match(rb"#!.*python.*\n", content):
            python_here = f"#!{environment}/bin/python\n".encode()
            copy.write_bytes(python_here + content.partition(b"\n")[2])
            copy.chmod(0o755)
        elif not copy.exists() and content.startswith(b"\x7fELF"):
            copy.symlink_to(installed)
    (clone / "build/tools").mkdir(parents=True)
    for wheel in (ROOT / "build/tools").glob("opwright-*.whl"):
        shutil.copy(wheel, clone / "build/tools")
    for made in (".venv/building", ".venv/releasing", "build/tools"):
        (clone / made).touch()


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """Yields a folder that another user can reach and own."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture(scope="module")
def origin(place: Path) -> Path:
    """Makes the new project, whose wheels wait for evidence. It has the same packages as this project, and so its
    images."""
    project = place / "origin"
    new.new("my-ext", project)
    shutil.copy(ROOT / "ci/torch.lock", project / "ci")
    matrix = project / "ci/matrix.toml"
    apt = json.dumps(tomllib.loads((ROOT / "ci/matrix.toml").read_text())["verify"]["apt"])
    text = matrix.read_text().replace("[verify]\n", f"[verify]\napt = {apt}\n")
    for old, short in SHORTER.items():
        assert old in text
        text = text.replace(old, short)
    matrix.write_text(f'{text}\n[publish]\ngpu_evidence = ["{HERE}"]\n')
    policy = project / "ci/policy.toml"
    policy.write_text(policy.read_text().replace('["70", "80", "90", "100", "120"]', '["70"]'))
    file = project / "pyproject.toml"
    file.write_text(file.read_text().replace('version = "0.1.0"', f'version = "{VERSION}"'))
    git(project, "add", "--all")
    git(project, "commit", "--message", "A first candidate that waits for a GPU")
    return project


@pytest.fixture(scope="module")
def dry_run(origin: Path, place: Path) -> NewProject:
    """Returns a run that is started by hand, on the branch."""
    (place / "run").mkdir()
    told = {"HOME": str(place / "run"), "GIT_CONFIG_COUNT": "1"}
    told |= {"GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
    branch = git(origin, "branch", "--show-current")
    workflows = origin / ".github/workflows"
    return NewProject(origin, branch, place / "run", told, workflows, ref_type="branch")


def reach(run: Rehearsal, server: GitHub) -> None:
    run.environment["GITHUB_API_URL"] = f"http://127.0.0.1:{server.server_port}"


def wheel_of(run: Rehearsal) -> Path:
    (wheel,) = run.artifacts.glob(f"release/*_{HERE}.whl")
    return wheel


def gpu_python(run: Rehearsal) -> Path:
    """Makes a stand-in for the Python of a GPU machine, which repeats the checks of the smoke test here."""
    like = run.folder / "like.json"
    shutil.copy(run.folder / f"clone/build/release/evidence/{HERE}.json", like)
    return program(run.folder, "gpu-python", f'LIKE={like} exec {STAND_INS}/gpu-python "$@"')


def test_a_dry_run_without_evidence_stops_and_says_what_to_do(
    dry_run: NewProject, github: GitHub
) -> None:
    reach(dry_run, github)
    with pytest.raises(Failed) as failed:
        dry_run.run()
    assert failed.value.job == "wheels"
    assert "no GPU evidence for my_ext" in failed.value.output, failed.value.output
    assert f"python smoke.py {wheel_of(dry_run).name}" in failed.value.output
    assert "ok       the environment `pypi`: somebody approves" in dry_run.printed["wheels"]
    assert {file.name.split("-")[1] for file in wheel_of(dry_run).parent.glob("*.whl")} == {VERSION}


def test_a_runner_with_a_gpu_makes_the_evidence(dry_run: NewProject) -> None:
    dry_run.gpu = str(gpu_python(dry_run))
    for line in ("make release", "make index"):
        dry_run.run_line("wheels", dry_run.folder / "clone", line, {}, 600)
    dry_run.gpu = ""
    served = (dry_run.folder / "clone/build/index/simple/my-ext/index.html").read_text()
    assert f"{wheel_of(dry_run).name}#sha256={sha256(wheel_of(dry_run))}" in served


@pytest.fixture(scope="module")
def tagged(dry_run: NewProject, new_index: Callable[[str], Index]) -> NewProject:
    """Commits evidence about that wheel, as from a notebook, tags the commit, and runs the workflow."""
    evidence = dry_run.origin / f"docs/evidence/{wheel_of(dry_run).stem}.json"
    evidence.parent.mkdir(parents=True)
    spec = ["--spec-command", "python -m my_ext --smoke-spec"]
    command = [gpu_python(dry_run), "-I", smoke.PROGRAM, wheel_of(dry_run), *spec]
    subprocess.run([*command, "--evidence", evidence], check=True)
    git(dry_run.origin, "add", "--all")
    git(dry_run.origin, "commit", "--message", "It ran on a GPU")
    for tag in (VERSION, "9.9.9"):
        git(dry_run.origin, "tag", f"v{tag}")
    where = new_index("of-the-new-project")
    told = {"UV_PUBLISH_URL": where.upload, "UV_PUBLISH_USERNAME": index.USER}
    told["UV_PUBLISH_PASSWORD"] = where.password or ""
    folder = dry_run.folder.with_name("tagged")
    folder.mkdir()
    run = NewProject(
        dry_run.origin, f"v{VERSION}", folder, dry_run.environment | told, dry_run.workflows
    )
    run.run()
    assert where.files("my-ext").items() >= {wheel_of(run).name: sha256(wheel_of(run))}.items()
    assert len(where.files("my-ext")) == 3
    return run


def test_with_pasted_evidence_a_candidate_is_published(
    tagged: NewProject, dry_run: NewProject
) -> None:
    assert list(tagged.printed) == ["wheels", "pypi"]
    assert sha256(wheel_of(tagged)) == sha256(wheel_of(dry_run)), (
        "the bytes that the evidence is of"
    )


def test_a_tag_of_another_version_is_not_released(tagged: NewProject) -> None:
    tagged.tag = "v9.9.9"
    with pytest.raises(Failed, match=r"the tag is v9\.9\.9, but"):
        tagged.run_job("wheels")

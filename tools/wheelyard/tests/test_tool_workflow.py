"""Rehearses the workflow that releases the tools: no job can replace or add to what another has made."""

import dataclasses
import os
import platform
import shutil
import subprocess
import venv
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from demo_project import engine_up
from rehearsal import PUBLIC, REPOSITORY, STAND_INS, Failed, Rehearsal, run_whole, stand_ins
from repository import ROOT, git, real_release
from wheelyard import __version__
from wheelyard.core.digest import sha256
from wheelyard.tools.index import Index

pytestmark = real_release()
HERE = platform.machine()
TOOLS = ("opwright", "wheelscope", "wheelyard")


@dataclass
class Tools(Rehearsal):
    """A rehearsal in which the other architecture's runner makes wheelscope's wheel under that architecture's name."""

    def run_line(
        self, name: str, clone: Path, line: str, given: dict[str, str], seconds: float
    ) -> dict[str, str]:
        if (other := given.get("ARCH", HERE)) != HERE:
            (wheel,) = (clone / "build/tools").glob("wheelscope-*.whl")
            wheel.rename(wheel.with_name(wheel.name.replace(HERE, other)))
        return super().run_line(name, clone, line, given, seconds)


@pytest.fixture(scope="module")
def released(new_index: Callable[[str], Index], tmp_path_factory: pytest.TempPathFactory) -> Tools:
    """Runs the whole workflow of a tag on this commit once."""
    folder = tmp_path_factory.mktemp("tools")
    git(ROOT, "clone", "--quiet", "--no-tags", str(ROOT), str(folder / "origin"))
    git(folder / "origin", "tag", f"wheelyard-v{__version__}")
    indexes = [new_index(f"tools-{name}") for name in PUBLIC]
    run = Tools(
        folder / "origin",
        f"wheelyard-v{__version__}",
        folder,
        stand_ins(folder, indexes),
        file="tools.yml",
    )
    run_whole(run)
    for where in indexes:
        served = {name: digest for tool in TOOLS for name, digest in where.files(tool).items()}
        assert served == run.signed
    return run


@pytest.fixture
def again(released: Tools, new_index: Callable[[str], Index], tmp_path: Path) -> Iterator[Tools]:
    """Yields the same run in its folder, as its virtual environments depend on that path, with an origin of its own and
    nothing sent."""
    shutil.copytree(released.artifacts, tmp_path / "artifacts")
    shutil.copy(released.signatures, tmp_path)
    shutil.copytree(released.origin, tmp_path / "origin")
    empty = [new_index(f"{tmp_path.name.replace('_', '-')}-{name}") for name in PUBLIC]
    yield dataclasses.replace(
        released,
        origin=tmp_path / "origin",
        environment=stand_ins(tmp_path, empty),
        outputs=dict(released.outputs),
        uploaders=dict(released.uploaders),
        signed={},
    )
    assert [where.files(tool) for where in empty for tool in TOOLS] == [{}] * 6
    shutil.rmtree(released.artifacts)
    shutil.copytree(tmp_path / "artifacts", released.artifacts)
    shutil.copy(tmp_path / released.signatures.name, released.signatures)


def test_four_wheels_of_three_tools_each_from_one_job(released: Tools) -> None:
    made = sorted(wheel.name for wheel in released.artifacts.rglob("*.whl"))
    assert made == sorted(released.signed)
    assert [name.split("-")[0] for name in made] == sorted((*TOOLS, "wheelscope"))


def replace(artifacts: Path) -> None:
    wheel = next((artifacts / "tools-x86_64").glob("wheelyard-*.whl"))
    wheel.write_bytes(b"evil")


def hand_on_anothers(artifacts: Path) -> None:
    wheel = next((artifacts / "tools-x86_64").glob("wheelyard-*.whl"))
    (artifacts / "tools-aarch64" / wheel.name).write_bytes(b"evil")
    wheel.unlink()


def add(artifacts: Path) -> None:
    (artifacts / "tools-aarch64/evil-1.0-py3-none-any.whl").write_bytes(b"evil")


def leave_out(artifacts: Path) -> None:
    next((artifacts / "tools-aarch64").glob("*.whl")).unlink()


@pytest.mark.parametrize("spoil", [replace, hand_on_anothers, add, leave_out])
def test_other_files_than_were_made_are_neither_signed_nor_sent(
    again: Tools, spoil: Callable[[Path], None]
) -> None:
    spoil(again.artifacts)
    for job in ("sign", *PUBLIC):
        with pytest.raises(Failed, match=r"where the wheels were made; nothing is sent"):
            again.run_job(job)
    assert again.signed == {}


def test_what_this_workflow_has_not_signed_is_not_sent(again: Tools) -> None:
    again.signatures.write_text(again.signatures.read_text().replace("tools.yml", "ci.yml"))
    with pytest.raises(Failed, match=r"(?s)verifying the provenance of .*no attestation"):
        again.run_job("testpypi")


@pytest.mark.parametrize("job", ["wheels", "pypi"])
def test_a_tag_on_a_commit_that_nobody_has_reviewed(again: Tools, job: str) -> None:
    branch = git(again.origin, "branch", "--show-current")
    git(again.origin, "checkout", "--quiet", "--detach")
    git(again.origin, "commit", "--allow-empty", "--message", "Not on the branch")
    git(again.origin, "tag", "--force", again.tag)
    git(again.origin, "checkout", "--quiet", branch)
    with pytest.raises(Failed, match=f"HEAD is not part of origin/{branch}"):
        again.run_job(job)


def test_a_tag_that_was_moved_before_the_approval(again: Tools) -> None:
    assert again.commit
    git(again.origin, "commit", "--allow-empty", "--message", "Later")
    git(again.origin, "tag", "--force", again.tag)
    with pytest.raises(Failed, match="the tag was moved from"):
        again.run_job("pypi")


def test_the_action_installs_what_the_workflow_has_signed(released: Tools, tmp_path: Path) -> None:
    """It runs in another project's job, and installs into the first Python on its PATH."""
    action = yaml.safe_load((ROOT / ".github/actions/wheelscope/action.yml").read_text())
    venv.create(tmp_path / "venv", with_pip=True)
    programs, signed = tmp_path / "venv/bin", tmp_path / "signed"
    told = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    told["PATH"] = os.pathsep.join([str(programs), str(STAND_INS), told["PATH"]])
    told |= {"PIP_INDEX_URL": released.environment["INDEX_PYPI"] + "+simple/", "VERSION": ""}
    told |= {"REPOSITORY": REPOSITORY, "GH_SIGNED": str(signed)}
    asked = f"--repo {REPOSITORY} --signer-workflow {REPOSITORY}/.github/workflows/tools.yml"
    run = [
        "bash",
        "--noprofile",
        "--norc",
        "-eo",
        "pipefail",
        "-c",
        action["runs"]["steps"][0]["run"],
    ]
    for digest, is_installed in (("0" * 64, False), (sha256(wheelscopes(released)), True)):
        signed.write_text(f"{digest} {asked} --deny-self-hosted-runners\n")
        done = subprocess.run(run, env=told, capture_output=True, text=True)
        assert (done.returncode == 0) == is_installed, done.stderr
        assert (programs / "wheelscope").exists() == is_installed


def wheelscopes(released: Tools) -> Path:
    (wheel,) = released.artifacts.glob(f"tools-{HERE}/wheelscope-*.whl")
    return wheel


def test_wheelscope_runs_where_there_is_nothing_else(released: Tools, tmp_path: Path) -> None:
    """The image has no Python, no shell and no C library, only the program and a wheel."""
    wheel, program = wheelscopes(released), tmp_path / "wheelscope"
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [n for n in archive.namelist() if n.endswith(".data/data/bin/wheelscope")]
        program.write_bytes(archive.read(name))
        assert archive.getinfo(name).external_attr >> 16 & 0o111, "installers would not let it run"
    program.chmod(0o755)
    shutil.copy(wheel, tmp_path)
    pack = ["tar", "-C", tmp_path, "-c", "wheelscope", wheel.name]
    content = subprocess.run(pack, stdout=subprocess.PIPE, check=True).stdout
    with engine_up() as docker:
        loaded = subprocess.run([docker, "import", "-"], input=content, capture_output=True)
        image = loaded.stdout.decode().strip()
        run = [docker, "run", "--rm", "--network=none", image, "/wheelscope"]
        try:
            for words, answer in (
                (["--version"], "wheelscope "),
                (["show", f"/{wheel.name}"], wheel.name),
            ):
                done = subprocess.run([*run, *words], capture_output=True, text=True)
                assert answer in done.stdout, done.stderr
        finally:
            subprocess.run([docker, "image", "rm", image], capture_output=True, check=True)

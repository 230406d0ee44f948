"""Tests the command `wheelyard` in pipes, folders and projects as users have them."""

import json
import os
import platform
import shlex
import subprocess
import sys
import tarfile
from pathlib import Path
from shlex import quote

import pytest
from demo_project import copy_of_demo
from demo_wheel import make_wheel
from recorded import passed, proof
from repository import ROOT, committed, wheelyard, write
from wheelyard import cli, steps
from wheelyard.core.digest import sha256
from wheelyard.core.job import Job
from wheelyard.core.progress import Display
from wheelyard.core.record import Record
from wheelyard.plan import plan as planning
from wheelyard.plan.plan import Options, Plan
from wheelyard.steps import publish
from wheelyard.tools import index


@pytest.mark.parametrize(
    "words", ["schema matrix", "schema policy --markdown", "plan", "plan --github", "digests"]
)
def test_a_reader_that_has_left(words: str, tmp_path: Path) -> None:
    done = subprocess.run(
        f"{quote(sys.executable)} -m wheelyard {words} | true",  # which ends before anything is written
        shell=True,
        cwd=ROOT,
        env={**os.environ, "RELEASE_FOLDER": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""


def small_project(folder: Path, **texts: str) -> Path:
    """Makes a project in git, of one torch and two CUDA versions."""
    files = {
        "pyproject.toml": '[project]\nname = "demo"\nversion = "1.0"\n',
        "ci/matrix.toml": f'[arch.{platform.machine()}]\n[torch."2.14"]\ncuda = ["13.0", "12.6"]\n',
        "ci/policy.toml": "",
        **texts,
    }
    return committed(write(folder, files))


def test_wheels_that_no_image_can_be_made_for_are_said_before_anything_starts(
    tmp_path: Path,
) -> None:
    folder = small_project(tmp_path / "a b")
    said = wheelyard(folder, "plan", "--base", "debian", COLUMNS="200").stdout
    assert "cannot be made yet: PyPI's torch 2.14" in said
    assert "1 wheels" not in said
    done = wheelyard(folder, "release", "--base", "debian")
    assert done.returncode == 1
    assert "is cu130, not cu126; take it out" in done.stderr


@pytest.mark.parametrize("port", ["99999999", "-1", "x"])
def test_a_port_that_no_machine_has_is_refused(tmp_path: Path, port: str) -> None:
    done = wheelyard(tmp_path, "scheduler", f"--port={port}", f"--keys={tmp_path}")
    assert f"argument --port: {port} is not a port, 0 to 65535" in done.stderr


def test_a_step_without_a_job_is_an_error(tmp_path: Path) -> None:
    done = wheelyard(small_project(tmp_path), "gpu", "--base", "debian")
    assert done.returncode == 1
    assert "this plan has no job of `gpu`: it runs the wheels of the architectures" in done.stderr


def test_what_a_release_makes_is_ignored_by_git(tmp_path: Path) -> None:
    folder = small_project(tmp_path)
    wheelyard(folder, "gpu", "--base", "debian")
    assert (folder / "build/release").is_dir()
    said = subprocess.run(["git", "status", "--porcelain"], cwd=folder, capture_output=True)
    assert said.stdout == b""


def test_a_place_where_no_release_can_be_made_is_named(tmp_path: Path) -> None:
    folder = small_project(tmp_path)
    (folder / "build").write_text("a file")
    done = wheelyard(folder, "gpu", "--base", "debian")
    assert done.returncode == 1
    assert "build/release cannot be written (Not a directory)" in done.stderr
    assert "Traceback" not in done.stderr


def test_what_serve_prints_installs_this_file_whoever_has_the_name_elsewhere(
    plan: Plan, record: Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pip is given the file's address and digest, and asks no index."""
    (wheel,) = (wheel for wheel in plan.wheels if wheel.arch == plan.machine)
    name = plan.project.normalised
    made = make_wheel(tmp_path, name)
    passed(record, "build/sdist", made)
    passed(record, f"repair/{wheel.name}", made)
    with index.embedded(record.folder / "index", sha256(made)) as served:
        publish.upload(served, name, {made: sha256(made)}, record.folder / "log")
    display, said = Display(), list[str]()
    monkeypatch.setattr(display, "say", said.append)
    (tmp_path / "taken").mkdir()

    def download() -> None:
        *pip, wanted = shlex.split(said[0])
        assert (pip, len(said)) == (["pip", "install"], 2)
        words = ["download", "--no-deps", "--no-index", "--quiet", "--dest", tmp_path / "taken"]
        subprocess.run([sys.executable, "-m", "pip", *words, wanted], check=True)

    monkeypatch.setattr("signal.pause", download)
    cli._serve(record, plan, display)
    assert [sha256(file) for file in (tmp_path / "taken").iterdir()] == [sha256(made)]
    assert f"#sha256={sha256(made)}'" in said[0]


def made_by(job: Job, folder: Path) -> Path:
    """Makes the files that a job of the demo project leaves; returns their folder."""
    (pattern,) = job.outputs or ("none",)
    file = folder / pattern.replace("*", "x")
    file.parent.mkdir(parents=True)
    if job.name == "build/sdist":
        (file.parent / "PKG-INFO").write_text("Name: demo_ext\nRequires-Python: >=3.10\n")
        with tarfile.open(file.with_name("demo_ext-1.0.tar.gz"), "w:gz") as archive:
            archive.add(file.parent / "PKG-INFO", "demo_ext-1.0/PKG-INFO")
        (file.parent / "PKG-INFO").unlink()
    elif job.step == "repair":
        name = f"demo_ext-1.0-py3-none-manylinux_2_28_{job.unit}.whl"
        make_wheel(file.parent, text=job.unit).rename(file.with_name(name))
    elif job.outputs:
        file.write_text(json.dumps(proof(gpu=None)) if job.step == "smoke" else job.name)
    return folder


def test_append_wants_every_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RELEASE_FOLDER", raising=False)
    project, site = copy_of_demo(tmp_path / "my project"), tmp_path / "my site"
    plan = planning.load(Options(), project)
    plan.project.release_folder.mkdir(parents=True)
    record, jobs = Record(plan.project.release_folder), steps.planned(plan, "smoke").jobs.values()
    for number, job in enumerate(jobs):
        if job.step == "smoke":  # the last one
            done = wheelyard(project, "append", str(site))
            assert "has not passed yet; run `wheelyard smoke` first" in done.stderr, done.stderr
        record.passed(job, record.resolve(job), made_by(job, tmp_path / str(number)), {}, 1.0)
    done = wheelyard(project, "append", "--index", "pypi", str(site))
    assert "unrecognized arguments: --index" in done.stderr, done.stdout + done.stderr
    done = wheelyard(project, "append", str(site))
    assert done.returncode == 0, done.stderr
    assert "3 files added to the index" in done.stdout
    page = (site / "simple/demo-ext/index.html").read_text()
    assert page.count('data-requires-python="&gt;=3.10">demo_ext-1.0.tar.gz') == 1
    assert {file.name for file in site.glob("demo_ext-1.0*")} == {
        file.name for file in record.files(*plan.released)
    }

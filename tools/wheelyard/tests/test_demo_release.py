"""Tests real releases of another project in real containers, with the faults that occur in practice."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from demo_project import containers, copy_of_demo, engine_up, processes, record
from demo_wheel import device_code
from repository import real_release, wheelyard
from wheelyard.steps import STEPS

pytestmark = real_release()


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a finished release of the demo project."""
    folder = copy_of_demo(tmp_path_factory.mktemp("demo") / "project")
    done = wheelyard(folder, "release")
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_step_has_passed(released: Path) -> None:
    tasks = record(released)
    assert {name.split("/")[0] for name in tasks} == set(STEPS)
    assert all(task["verdict"] == "passed" for task in tasks.values())
    made = sorted((released / "wheelhouse").glob("[!.]*"))
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *made], check=True)
    wheels = [path.name for path in made if path.suffix == ".whl"]
    assert [("aarch64" in name, "x86_64" in name) for name in wheels].count((True, False)) == 1
    assert len(wheels) == 2


def test_no_container_and_no_index_is_left(released: Path) -> None:
    assert containers(released) == []
    assert processes(released) == []


def test_no_secret_and_no_cache_in_an_image(released: Path) -> None:
    images = {
        str(task["facts"]["verdict"]) for name, task in record(released).items() if "image/" in name
    }
    assert len(images) == 2
    look = (
        "cat /etc/pip.conf /etc/apt/apt.conf.d/99host 2>/dev/null; "
        "find /run/secrets ~/.cache /var/cache/pip /var/cache/apt/archives /var/lib/apt/lists "
        "-type f -size +0 2>/dev/null; echo looked"
    )
    with engine_up() as docker:
        for image in images:
            inside = [docker, "run", "--rm", image, "sh", "-c", look]
            assert subprocess.check_output(inside, text=True) == "looked\n", image
            told = subprocess.check_output([docker, "history", "--no-trunc", image], text=True)
            assert "index-url" not in told
            assert "CERTIFICATE" not in told


def test_the_record_has_the_packages_of_each_image(released: Path) -> None:
    lists = {f.name: f.read_text() for f in (released / "build/release/packages").iterdir()}
    assert len(lists) == 2
    for name, text in lists.items():
        for start in ("torch==2.10.0@", "libc6:"):
            assert any(package.startswith(start) for package in text.split()), (name, start)


def test_run_again_does_nothing_and_is_fast(released: Path) -> None:
    began = time.monotonic()
    done = wheelyard(released, "release")
    assert done.returncode == 0
    assert done.stdout.count("unchanged (") == len(STEPS)
    assert time.monotonic() - began < 20


def test_an_unserved_cell_fails_the_gate(released: Path) -> None:
    matrix = released / "ci/matrix.toml"
    text = matrix.read_text()
    matrix.write_text(
        text.replace('cuda = ["cpu"]', 'cuda = ["cpu"]\npythons = ["2.7", "3.11"]').replace(
            '["3.11", "3.12"]', '["2.7", "3.11"]'
        )
    )
    try:
        done = wheelyard(released, "gate")
    finally:
        matrix.write_text(text)
        assert wheelyard(released, "gate").returncode == 0
    assert done.returncode == 1
    assert "wheelscope cover failed" in done.stderr
    assert "2.7" in done.stderr


def test_a_package_missing_from_the_index(tmp_path: Path) -> None:
    project = copy_of_demo(tmp_path / "project")
    (project / "ci/torch.lock").unlink()
    matrix = project / "ci/matrix.toml"
    text = matrix.read_text()
    matrix.write_text(text.replace('[torch."2.10"]', '[torch."2.10"]\nrelease = "2.10.99"'))
    done = wheelyard(project, "image")
    assert done.returncode == 1
    assert "torch==2.10.99" in done.stderr
    assert "The package index lacks that version" in done.stderr


def test_a_package_that_torch_needs_and_the_lock_lacks(tmp_path: Path) -> None:
    project = copy_of_demo(tmp_path / "project")
    lock = project / "ci/torch.lock"
    lock.write_text(re.sub(r"^sympy==.*\n", "", lock.read_text(), flags=re.MULTILINE))
    done = wheelyard(project, "image", "--task", "verify-*")
    assert done.returncode == 1
    assert "sympy" in done.stderr
    assert "The lock lacks a package" in done.stderr


def test_image_registry_unreachable(released: Path, tmp_path: Path) -> None:
    machine = os.uname().machine
    proxy = {"https_proxy": "http://127.0.0.1:9", "RELEASE_FOLDER": str(tmp_path)}
    done = wheelyard(released, "image", "--base", "pypa", "--wheel", machine, **proxy)
    assert done.returncode == 1
    assert "is not reachable; use --base debian" in done.stderr


def with_gpu_code(project: Path) -> Path:
    """Gives the project a CUDA toolkit and a fat binary; its images are those of this repository."""
    matrix, source = project / "ci/matrix.toml", project / "demo_ext/demo.c"
    matrix.write_text(
        matrix.read_text()
        .replace('cuda = ["cpu"]', 'cuda = ["12.8", "cpu"]')
        .replace('x86_64 = "cpu"', 'x86_64 = "12.8"')
        .replace("[verify]", '[verify]\napt = ["g++", "openssl", "libpython{python}-dev"]')
        + '\n[toolkit."12.9"]\ntargets = ["8.0", "9.0+PTX"]\n\n[wheels]\nvariants = "gpu"\n'
    )
    source.write_text(source.read_text() + device_code("8.0", "9.0+PTX"))
    return project


def test_variants_are_made_gated_installed_and_listed(tmp_path: Path) -> None:
    project = with_gpu_code(copy_of_demo(tmp_path / "project"))
    done = wheelyard(project, "release")
    assert done.returncode == 0, done.stdout + done.stderr
    verdicts = {name: job["facts"].get("verdict") for name, job in record(project).items()}
    here = os.uname().machine
    for arch in ("x86_64", "aarch64"):
        assert verdicts[f"gate/{arch}-variants"] == "2 variants serve 8.0, 8.6, 8.9, 9.0"
    for label in ("sm80", "sm90"):
        taken = verdicts[f"verify/{here}-{label}-torch2.10-python3.11"]
        assert taken.startswith("uv took demo_ext-1.0-py3-none-manylinux")
        assert taken.endswith(f"_{here}-{label}.whl")
    assert "3 files uploaded, 0 already there; 4 variants left out" in verdicts["publish/embedded"]
    place = project / "build/release/simple/demo-ext"
    listed = json.loads((place / "demo_ext-1.0-variants.json").read_text())
    assert set(listed["variants"]) == {"sm80", "sm90"}
    assert (place / "index.html").read_text().count("<a ") == 3 + 4 + 1

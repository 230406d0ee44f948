"""Strategy `each` on an ordinary CUDAExtension project: four real wheels, and real pip beside each torch.

The project has pybind, a version from git's tags, a module with another name than the distribution, and a dependency
beyond torch. Nothing of this repository but the installed tool is used.
"""

import email
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import ordinary_project
import pytest
from ordinary_project import CELLS
from real_releases import real_release

pytestmark = real_release(large=True)
COMMAND = [sys.executable, "-m", "wheelyard"]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = ordinary_project.copy(tmp_path_factory.mktemp("ordinary") / "project")
    done = ordinary_project.release(folder, COMMAND)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def jobs(project: Path) -> dict[str, dict[str, Any]]:
    return ordinary_project.jobs(project)


@pytest.fixture(scope="module")
def wheels(project: Path) -> dict[tuple[str, str], Path]:
    return ordinary_project.wheels(project)


def metadata(wheel: Path) -> email.message.Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        return email.message_from_bytes(archive.read(name))


def test_there_are_four_wheels_and_no_more(
    project: Path, wheels: dict[tuple[str, str], Path]
) -> None:
    assert sorted((project / "wheelhouse").glob("*.whl")) == sorted(wheels.values())


def test_a_wheel_asks_for_its_torch_and_keeps_its_other_requirements(
    wheels: dict[tuple[str, str], Path],
) -> None:
    for (torch, _), wheel in wheels.items():
        assert sorted(metadata(wheel).get_all("Requires-Dist", [])) == [
            "einops>=0.8",
            f"torch=={torch}.*",
        ]


def test_the_version_comes_from_the_tag(project: Path) -> None:
    assert (project / "wheelhouse/ordinary_ext-1.2.0.tar.gz").exists()


def test_each_wheel_ran_beside_its_torch_in_a_fresh_container(jobs: dict[str, Any]) -> None:
    for torch, python in CELLS:
        (name,) = (
            n for n in jobs if n.endswith(f"-torch{torch}-python{python}") and "verify/" in n
        )
        assert jobs[name]["verdict"] == "passed", name
        assert "6 passed" in jobs[name]["facts"]["verdict"], name


def test_pip_took_the_right_wheel_beside_each_torch(
    project: Path, wheels: dict[tuple[str, str], Path]
) -> None:
    assert ordinary_project.what_pip_took(project) == {
        cell: f"pip took {wheel.name}" for cell, wheel in wheels.items()
    }


def test_what_builds_a_wheel_is_what_its_torch_requires(jobs: dict[str, Any]) -> None:
    """setuptools and the others in the build image: torch names versions of them that it works with."""
    images = {
        job["facts"]["image"]
        for name, job in jobs.items()
        if name.startswith("build/") and name != "build/sdist"
    }
    assert len(images) == len(CELLS)
    for image in images:
        words = ["docker", "run", "--rm", "--network=none", image, "python", "-m", "pip", "check"]
        checked = subprocess.run(words, capture_output=True, text=True)
        assert checked.returncode == 0, checked.stdout

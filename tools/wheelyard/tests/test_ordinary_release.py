"""Strategy `each` on an ordinary CUDAExtension project: four real wheels, and real pip beside each torch.

The project has pybind, a version from git's tags, a module with another name than the distribution, and a dependency
beyond torch. Nothing of this repository but the installed tool is used.
"""

import email
import functools
import http.server
import os
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ordinary_project
import pytest
from ordinary_project import CELLS, TORCHES
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


@pytest.fixture
def web_server(project: Path) -> Iterator[str]:
    """The release folder on a plain web server, as people host it."""
    handler = functools.partial(
        http.server.SimpleHTTPRequestHandler, directory=project / "build/release"
    )
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/simple"
        server.shutdown()


def test_pip_takes_each_wheel_from_its_static_index(
    web_server: str, wheels: dict[tuple[str, str], Path], tmp_path: Path
) -> None:
    for (torch, python), wheel in wheels.items():
        index = f"{web_server}/{TORCHES[torch]}-torch{torch}/"
        target = tmp_path / f"{torch}-{python}"
        platform = wheel.stem.split("-")[-1].split(".")[0]
        words = ["download", "--quiet", "--no-deps", "--only-binary=:all:", f"--dest={target}"]
        words += [f"--platform={platform}", f"--python-version={python}", f"--index-url={index}"]
        environment = {n: v for n, v in os.environ.items() if n != "PIP_FIND_LINKS"}
        subprocess.run(
            [sys.executable, "-m", "pip", *words, "ordinary-ext"], check=True, env=environment
        )
        (taken,) = target.iterdir()
        assert (taken.name, taken.read_bytes()) == (wheel.name, wheel.read_bytes())


def test_people_find_their_row(project: Path) -> None:
    page = (project / "build/release/simple/index.html").read_text()
    for torch, cuda in TORCHES.items():
        assert f"<td>{torch}</td><td>{cuda}</td><td>cp311, cp313</td>" in page


def test_a_second_run_does_nothing(project: Path) -> None:
    before = ordinary_project.jobs(project)
    done = ordinary_project.release(project, COMMAND)
    assert done.returncode == 0, done.stderr
    assert ordinary_project.jobs(project) == before

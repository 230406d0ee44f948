"""Strategy `each` on an ordinary CUDAExtension project: four real wheels, and real pip beside each torch.

The project has pybind, a version from git's tags, a module with another name than the distribution, and a dependency
beyond torch. Nothing of this repository but the installed tool is used.
"""

import email
import functools
import http.server
import json
import os
import shutil
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(
    "RELEASE_TESTS" not in os.environ,
    reason="minutes of real container builds; `make test-release` runs them",
)
STRANGER = Path(__file__).with_name("stranger")
TORCHES = {"2.12": "cu130", "2.15": "cu132"}
PYTHONS = ["3.11", "3.13"]
CELLS = [(torch, python) for torch in TORCHES for python in PYTHONS]


def wheelyard(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if name != "WHEELHOUSE"}
    command = [sys.executable, "-m", "wheelyard", *words]
    return subprocess.run(command, cwd=folder, env=clean, capture_output=True, text=True)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project in a git repository of its own, tagged, and released."""
    folder = tmp_path_factory.mktemp("stranger") / "project"
    shutil.copytree(STRANGER, folder)
    (folder / ".gitignore").write_text("/wheelhouse/\n")
    who = ["-c", "user.name=test", "-c", "user.email=test@localhost"]
    for words in (
        ["init", "--quiet"],
        ["add", "--all"],
        [*who, "commit", "--quiet", "-m", "first"],
        [*who, "tag", "-m", "first", "v1.2.0"],
    ):
        subprocess.run(["git", *words], cwd=folder, check=True)
    # A cache that outlives the test: what the compilers are given is the same each time.
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "wheelyard-tests"
    done = wheelyard(folder, "release", "--cache", str(cache))
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def jobs(project: Path) -> dict[str, dict[str, Any]]:
    found = json.loads((project / "wheelhouse/release.json").read_text())["jobs"]
    assert isinstance(found, dict)
    return found


@pytest.fixture(scope="module")
def wheels(project: Path) -> dict[tuple[str, str], Path]:
    """The wheel of each cell, by its name."""
    found = {}
    for torch, python in CELLS:
        tag = "cp" + python.replace(".", "")
        start = f"stranger_ext-1.2.0+{TORCHES[torch]}torch{torch}-{tag}-{tag}-manylinux_2_"
        (found[torch, python],) = (project / "wheelhouse").glob(
            f"{start}*_{os.uname().machine}.whl"
        )
    return found


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
    assert (project / "wheelhouse/stranger_ext-1.2.0.tar.gz").exists()


def test_each_wheel_ran_beside_its_torch_in_a_fresh_container(jobs: dict[str, Any]) -> None:
    for torch, python in CELLS:
        (name,) = (
            n for n in jobs if n.endswith(f"-torch{torch}-python{python}") and "verify/" in n
        )
        assert jobs[name]["verdict"] == "passed", name
        assert "6 passed" in jobs[name]["facts"]["verdict"], name


def test_pip_took_the_right_wheel_beside_each_torch(
    jobs: dict[str, Any], wheels: dict[tuple[str, str], Path]
) -> None:
    for (torch, python), wheel in wheels.items():
        job = jobs[f"install/embedded-torch{torch}-python{python}"]
        assert job["facts"]["verdict"] == f"pip took {wheel.name}"


@pytest.fixture
def web_server(project: Path) -> Iterator[str]:
    """The wheelhouse on a plain web server, as people host it."""
    handler = functools.partial(
        http.server.SimpleHTTPRequestHandler, directory=project / "wheelhouse"
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
            [sys.executable, "-m", "pip", *words, "stranger-ext"], check=True, env=environment
        )
        (taken,) = target.iterdir()
        assert (taken.name, taken.read_bytes()) == (wheel.name, wheel.read_bytes())


def test_people_find_their_row(project: Path) -> None:
    page = (project / "wheelhouse/simple/index.html").read_text()
    for torch, cuda in TORCHES.items():
        assert f"<td>{torch}</td><td>{cuda}</td><td>cp311, cp313</td>" in page


def test_a_second_run_does_nothing(project: Path) -> None:
    before = (project / "wheelhouse/release.json").read_text()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "wheelyard-tests"
    done = wheelyard(project, "release", "--cache", str(cache))
    assert done.returncode == 0, done.stderr
    assert (
        json.loads(before)["jobs"]
        == json.loads((project / "wheelhouse/release.json").read_text())["jobs"]
    )

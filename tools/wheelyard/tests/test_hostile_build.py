"""Tests a hostile setup.py in a real build: it finds no way out of its container, and nothing that it does afterwards
counts."""

import json
import platform
import secrets
import socket
import threading
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from demo_project import containers, copy_of_demo, record
from repository import real_release, wheelyard
from wheelyard.core.digest import sha256

pytestmark = real_release()

HOSTILE = Path(__file__).with_name("hostile_setup.py")
# Added to the demo project's setup.py: writes the results of all attempts into the package, and leaves a process
# behind.
ATTACK = """
import json, sys
sys.path.insert(0, ".")
import hostile_setup
where = "wheel" if "bdist_wheel" in sys.argv else "sdist"
open(f"demo_ext/tried-{where}.json", "w").write(json.dumps(hostile_setup.tried()))
hostile_setup.leave_a_process()
"""


@pytest.fixture(scope="module")
def listener() -> Iterator[tuple[int, list[str]]]:
    """Yields a port of this machine, and the addresses that reached it."""
    heard: list[str] = []
    with socket.create_server(("0.0.0.0", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    _, address = server.accept()
                except OSError:
                    return
                heard.append(str(address))

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1], heard


@pytest.fixture(scope="module")
def built(
    tmp_path_factory: pytest.TempPathFactory, listener: tuple[int, list[str]]
) -> tuple[Path, str]:
    """Builds and repairs the demo project with a hostile setup.py, in a shell full of settings; returns it and the
    mark."""
    folder, mark = tmp_path_factory.mktemp("hostile"), f"mark-{secrets.token_hex(8)}"
    project = copy_of_demo(folder / "project")
    (folder / "secret").write_text(mark)
    text = HOSTILE.read_text().replace("{secret}", str(folder / "secret"))
    text = text.replace("{listener}", str(listener[0])).replace("{mark}", mark)
    (project / "hostile_setup.py").write_text(text)
    setup = project / "setup.py"
    setup.write_text(setup.read_text().replace("import os\n", f"{ATTACK}\nimport os\n", 1))
    (project / "MANIFEST.in").write_text(
        "include demo_ext/demo.c demo_ext/*.json hostile_setup.py\n"
    )
    pyproject = project / "pyproject.toml"
    pyproject.write_text(pyproject.read_text().replace('["*.so"]', '["*.so", "*.json"]'))
    settings = {
        "HOSTILE_SETTING": mark,
        "TWINE_PASSWORD": mark,
        "CIBW_ENVIRONMENT_LINUX": "HOSTILE_CIBW=1",
        "CIBW_CONTAINER_ENGINE": "docker; create_args: --privileged --network=host",
        "DOCKER_DEFAULT_PLATFORM": "linux/riscv64",
    }
    for step in ("build", "repair"):
        done = wheelyard(project, step, "--wheel", platform.machine(), **settings)
        assert done.returncode == 0, done.stdout + done.stderr
    return project, mark


@pytest.mark.parametrize("where", ["sdist", "wheel"])
def test_no_attempt_gets_through(built: tuple[Path, str], where: str) -> None:
    (wheel,) = (built[0] / "wheelhouse").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        tried = json.loads(archive.read(f"demo_ext/tried-{where}.json"))
    assert len(tried) >= 15
    assert [name for name, end in tried.items() if end == "through"] == []


def test_the_host_was_not_touched(built: tuple[Path, str], listener: tuple[int, list[str]]) -> None:
    project, mark = built
    assert listener[1] == [], "nobody reached the port"
    assert not list(project.parent.glob("written-by-the-build"))
    assert mark not in (project / "setup.py").read_text()
    assert mark not in (project / ".git/config").read_text()


def test_what_runs_on_after_the_build_changes_nothing(built: tuple[Path, str]) -> None:
    project, _ = built
    made = {p: d for job in record(project).values() for p, d in job["outputs"].items()}
    time.sleep(25)  # the processes that were left behind would have begun
    assert {p: sha256(project / "build/release" / p) for p in made} == made
    assert containers(project) == []

"""The template under another name, without this repository around it: its tests and its release, in a container.

The container is a bare Debian that has `make` and the new project. Like a user's machine it gets the rest by itself,
a container engine of its own among it.
"""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from test_new_project import WHERE, make
from wheelyard.core import engine
from wheelyard.core.engine import Engine
from wheelyard.core.workspace import Workspace
from wheelyard.tools import host_settings, suite
from wheelyard.tools.images import PROXIES

pytestmark = [
    pytest.mark.skipif(
        "RELEASE_TESTS" not in os.environ,
        reason="an hour of real builds; `make test-new` runs it",
    ),
    pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning"),  # dockerd
]
SUITE = "bookworm"
SETTINGS = {"apt": "/etc/apt/apt.conf.d/99host", "pip": "/etc/pip.conf", "ca": "/run/secrets/ca"}
ENGINE_OF_ITS_OWN = (  # what --privileged gives, which not every machine may give
    *("--cap-add=SYS_ADMIN", "--cap-add=NET_ADMIN", "--cgroupns=host"),
    *(f"--security-opt={what}=unconfined" for what in ("seccomp", "apparmor", "systempaths")),
    *("--volume=/sys/fs/cgroup:/sys/fs/cgroup", "--volume=/var/lib/docker"),
)


class Docker:
    """What a runner of wheelyard gives its jobs."""

    def __init__(self, folder: Path) -> None:
        self.found = engine.ready(folder, self.say)

    def engine(self) -> Engine:
        return self.found

    def say(self, text: str) -> None:
        print(text)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("alone") / "row_kernels"
    made = make("row-kernels", folder, *WHERE)
    assert made.returncode == 0, made.stderr
    return folder


@pytest.fixture(scope="module")
def inside(
    project: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], str]]:
    """Runs a command in the project, in a container that has nothing else."""
    folder = tmp_path_factory.mktemp("container")
    docker = Docker(folder)
    place = Workspace({}, folder, folder / "log", folder, folder, folder, docker)
    image, command = suite.ensure(SUITE, docker.found, place), docker.found.command
    settings = host_settings.files(folder)
    options = [f"--volume={settings[name]}:{path}:ro" for name, path in SETTINGS.items()]
    options += [f"--env={name}" for name in PROXIES if name in os.environ]
    start = [command, "run", "--detach", "--rm", "--init", "--shm-size=1g", *ENGINE_OF_ITS_OWN]
    container = subprocess.check_output(
        [*start, *options, image, "sleep", "infinity"], text=True
    ).strip()

    def run(words: str) -> str:
        done = subprocess.run(
            [command, "exec", "--workdir=/project", container, "sh", "-ec", words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    try:
        subprocess.run([command, "cp", f"{project}/.", f"{container}:/project"], check=True)
        run("apt-get -q update && apt-get -qy install --no-install-recommends make")
        yield run
    finally:
        subprocess.run([command, "rm", "--force", "--volumes", container], check=True)
        docker.found.leave(print)


@pytest.mark.parametrize("target", ["plan", "lint", "test-package", "release", "test"])
def test_its_targets_pass(inside: Callable[[str], str], target: str) -> None:
    said = inside(f"make {target}")
    print(said[-2000:])
    if target.startswith("test"):
        assert " passed" in said


def test_its_release_is_of_its_name(inside: Callable[[str], str]) -> None:
    wheels = inside("ls wheelhouse | grep whl$").split()
    assert len(wheels) == 2
    assert all(name.startswith("row_kernels-0.1.0-py3-none-manylinux") for name in wheels)

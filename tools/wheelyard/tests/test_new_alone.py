"""Tests a newcomer's project without this repository around it: made, tested and released in a bare Debian.

A container has what the new project's README asks for and the three wheels. It shares this machine's engine and its
images, so the project is in the same folder inside and outside.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import recorded
from repository import ROOT, real_release
from tools.release import wheels as tool_wheels
from wheelyard.core import engine as engines
from wheelyard.tools import host_settings, suite
from wheelyard.tools.images import PROXIES

pytestmark = [
    real_release(large=True),
    pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning"),  # dockerd
]
NEEDED = "git make g++ python3-venv"  # as the project's README.md says
CLIENT = {"bookworm": "docker.io", "trixie": "docker-cli"}
SETTINGS = {"apt": "/etc/apt/apt.conf.d/99host", "pip": "/etc/pip.conf", "ca": "/run/secrets/ca"}
CHECK_SECONDS = 90  # of processor time, once the environment exists


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tools")
    tool_wheels.make(folder)
    target = [f"DESTINATION={folder}", f"PYTHON={sys.executable}"]
    subprocess.run(["make", "-C", ROOT / "tools/opwright", "wheel", *target], check=True)
    return folder


@pytest.fixture(scope="module", params=["bookworm", "trixie"])
def inside(
    request: pytest.FixtureRequest, wheels: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], str]]:
    """Yields a function that runs a command in the new project's folder, in a container that has nothing else."""
    folder = tmp_path_factory.mktemp("alone")
    shutil.copytree(wheels, folder / "the wheels")
    engine = engines.ready(folder, print)
    image = suite.ensure(request.param, engine, recorded.workspace(folder, {}))
    settings = host_settings.files(folder)
    downloads = Path.home() / ".cache/pip"
    shared = [folder, downloads, Path("/var/run/docker.sock")]
    options = [f"--volume={path}:{path}" for path in shared]
    options += [f"--volume={settings[name]}:{path}:ro" for name, path in SETTINGS.items()]
    options += [f"--env={name}" for name in PROXIES if name in os.environ]
    start = [engine.command, "run", "--detach", "--rm", "--init", "--network=host", *options]
    container = subprocess.check_output([*start, image, "sleep", "infinity"], text=True).strip()

    def run(words: str, place: str = "my ext") -> str:
        done = subprocess.run(
            [
                engine.command,
                "exec",
                f"--workdir={folder / place}",
                container,
                "bash",
                "-ec",
                words,
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        print(done.stdout[-3000:])
        assert done.returncode == 0, done.stdout
        return done.stdout

    try:
        packages = f"{NEEDED} {CLIENT[request.param]}"
        run(f"apt-get -q update && apt-get -qy install --no-install-recommends {packages}", ".")
        run(
            "python3 -m venv start && start/bin/pip install -q --find-links 'the wheels' wheelyard",
            ".",
        )
        run(
            "start/bin/wheelyard new my-ext 'my ext' --tools 'the wheels' && rm -r start 'the wheels'",
            ".",
        )
        yield run
    finally:
        subprocess.run([engine.command, "rm", "--force", "--volumes", container], check=True)
        engine.leave(print)


def test_its_check_passes(inside: Callable[[str], str]) -> None:
    inside("make .venv/building")
    said = inside("TIMEFORMAT='processor: %U %S' && time make check")
    assert " passed" in said
    assert " failed" not in said
    used = re.search(r"processor: (\S+) (\S+)", said)
    assert used
    assert sum(map(float, used.groups())) <= CHECK_SECONDS


def test_its_release_passes(inside: Callable[[str], str]) -> None:
    # The engine has images with these bytes of torch.
    inside(f"cat >ci/torch.lock <<'END'\n{(ROOT / 'ci/torch.lock').read_text()}END")
    inside("git add ci && git -c user.name=me -c user.email=me@localhost commit -qm 'Pin torch'")
    inside("make release")
    made = inside("ls wheelhouse | grep whl$").split()
    assert len(made) == 2
    assert all(name.startswith("my_ext-0.1.0-py3-none-manylinux") for name in made)
    assert "298 cells" in inside("make plan")

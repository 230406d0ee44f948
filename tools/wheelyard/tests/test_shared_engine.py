"""Tests images on a real docker engine: made once for all its users.

The engine is the test's own, in a network namespace of its own, as this machine's has other people's images.
"""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from repository import real_release
from wheelyard.core import shell
from wheelyard.core.engine import Engine, _builder
from wheelyard.core.workspace import Workspace
from wheelyard.tools import images

pytestmark = [
    real_release(),
    pytest.mark.skipif(os.geteuid() != 0, reason="starts an engine, which needs root"),
]
PROGRAMS = "/bin/sh /bin/cp"
# Every run leaves other bytes, as installing packages may.
DOCKERFILE = """
ARG BASE_IMAGE
FROM ${BASE_IMAGE} AS verify
RUN --mount=type=secret,id=pip \\
    cp /proc/sys/kernel/random/uuid /made
ARG PYTHON
RUN cp /made "/made-$PYTHON"
"""


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    """Yields an engine that has nothing but a base image with a shell."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # the path of a socket must be short
        monkeypatch.setenv("DOCKER_HOST", f"unix://{folder}/socket")
        words = [
            f"--data-root={folder}/data",
            f"--exec-root={folder}/run",
            f"--pidfile={folder}/pid",
        ]
        words += ["--iptables=false", f"--host=unix://{folder}/socket"]
        with Path(folder, "log").open("w") as log:
            daemon = subprocess.Popen(
                ["unshare", "--net", "dockerd", *words], stdout=log, stderr=log
            )
        try:
            while shell.capture(["docker", "info"]) is None:
                assert daemon.poll() is None, Path(folder, "log").read_text()
                time.sleep(0.2)
            libraries = f"$(ldd {PROGRAMS} | grep -o '/lib[^ ]*' | sort -u)"
            base = f"tar -chf - {PROGRAMS} {libraries} | docker import - base/shell"
            subprocess.run(base, shell=True, check=True, capture_output=True)
            yield Engine("docker", "label", _builder("docker", print))
        finally:
            daemon.terminate()
            daemon.wait()


@pytest.fixture
def place(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    class Here:
        def engine(self) -> Engine:
            return engine

        def say(self, text: str) -> None:
            print(text)

    shutil.copytree(images.FOLDER, tmp_path / "docker")
    (tmp_path / "docker/Dockerfile").write_text(DOCKERFILE)
    monkeypatch.setattr(images, "FOLDER", tmp_path / "docker")
    folder = tmp_path / "job"
    folder.mkdir()
    return Workspace({}, folder, folder / "log", folder, folder, folder, Here())


def recipe(python: str, tag: str = "") -> images.Recipe:
    bases, arguments = {"BASE_IMAGE": "base/shell"}, {"PYTHON": python}
    made = {"target": "verify", "bases": bases, "arguments": arguments}
    return {**made, "tag": tag or f"wheelyard-verify:{python}"}


def docker(*words: str) -> str:
    return subprocess.check_output(["docker", *words], text=True).strip()


def identity(name: str) -> str:
    return docker("image", "inspect", "--format={{.Id}}", name)


def test_one_user_takes_what_another_made_and_nothing_that_stands_under_its_name(
    place: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tag = images.ensure(recipe("3.11"), place)
    made = identity(tag)
    docker("builder", "prune", "--all", "--force")
    monkeypatch.setenv("HOME", str(tmp_path / "another"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "another/caches"))
    images.ensure(recipe("3.11"), place)
    assert identity(tag) == made
    for planted in ("base/shell", images.ensure(recipe("3.12"), place)):
        docker("tag", planted, tag)
        images.ensure(recipe("3.11"), place)
        assert identity(tag) not in (made, identity(planted))

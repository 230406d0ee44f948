"""Defines what the pipeline's tests share: the plan of this project in a release folder of its own, and real
indexes."""

import base64
import json
import os
import secrets
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rehearsal import PUBLIC
from repository import ROOT, wait_until
from wheelyard.core.record import Record
from wheelyard.plan import plan as planning
from wheelyard.plan.plan import Options, Plan
from wheelyard.tools.index import USER, Index

collect_ignore = ["demo", "ordinary"]  # other projects, with tests of their own
PROGRAMS = Path(sys.executable).parent
START_SECONDS = 300  # a busy machine may take minutes


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plan:
    """Returns the plan of this repository, with an empty release folder."""
    monkeypatch.setenv("RELEASE_FOLDER", str(tmp_path / "release"))
    return planning.load(Options(), ROOT)


@pytest.fixture
def record(plan: Plan) -> Record:
    plan.project.release_folder.mkdir()
    return Record(plan.project.release_folder)


@pytest.fixture(scope="session")
def new_index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Index]]:
    """Yields a function that makes an empty index of a given name in a real devpi, which stands for the indexes that
    tests upload to: PyPI, TestPyPI and those of companies."""
    folder, password = tmp_path_factory.mktemp("devpi"), secrets.token_urlsafe()
    words = [f"--serverdir={folder}/server"]
    told = {**os.environ, "DEVPISERVER_ROOT_PASSWD": password}
    subprocess.run([PROGRAMS / "devpi-init", *words, "--no-root-pypi"], env=told, check=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    words += ["--host=127.0.0.1", f"--port={port}"]

    def make(name: str) -> Index:
        login = call(f"{url}/+login", "POST", {"user": USER, "password": password})["result"]
        auth = base64.b64encode(f"{USER}:{login['password']}".encode()).decode()
        settings = {"type": "stage", "bases": [], "volatile": False}
        call(f"{url}/{USER}/{name}", "PUT", settings, {"X-Devpi-Auth": auth})
        place = f"{url}/{USER}/{name}/"
        return Index(name, place, f"{place}+simple/", password)

    with (folder / "log").open("wb") as log:
        server = subprocess.Popen([PROGRAMS / "devpi-server", *words], stdout=log, stderr=log)
    try:
        wait_until(lambda: server.poll() is not None or answers(url), START_SECONDS)
        assert server.poll() is None, (folder / "log").read_text()
        yield make
    finally:
        server.terminate()
        server.wait()


@pytest.fixture(scope="session")
def indexes(new_index: Callable[[str], Index]) -> list[Index]:
    return [new_index(name) for name in PUBLIC]


def answers(url: str) -> bool:
    try:
        call(f"{url}/+api")
    except OSError:
        return False
    return True


def call(
    url: str, method: str = "GET", body: object = None, more: dict[str, str] | None = None
) -> Any:
    headers = {"Accept": "application/json", "Content-Type": "application/json", **(more or {})}
    data = json.dumps(body).encode() if body else None
    request = urllib.request.Request(url, data, headers, method=method)
    with urllib.request.urlopen(request, timeout=120) as answer:
        return json.load(answer)

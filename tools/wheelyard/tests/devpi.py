"""Runs a real devpi, which stands for the indexes that tests upload to: PyPI, TestPyPI and those of companies."""

import base64
import json
import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from wheelyard.tools.index import USER, Index

PROGRAMS = Path(sys.executable).parent
START_SECONDS = 300  # a busy machine may take minutes


@contextmanager
def running(folder: Path) -> Iterator[Callable[[str], Index]]:
    """Yields a function that makes an empty index of a given name in a devpi."""
    password = secrets.token_urlsafe()
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
        began = time.monotonic()
        while not answers(url):
            assert server.poll() is None, (folder / "log").read_text()
            assert time.monotonic() - began < START_SECONDS
            time.sleep(0.2)
        yield make
    finally:
        server.terminate()
        server.wait()


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

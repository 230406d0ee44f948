"""Publishing to a real devpi: nothing twice, nothing changed, and every fault names its cure."""

import dataclasses
import json
import socket
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from demo_wheel import make_wheel

from ci import index, publish
from ci.errors import Problem
from ci.index import Index
from ci.project import sha256
from ci.release import Release
from ci.state import Result, Task

NAME = "demo_ext"


@pytest.fixture(scope="module")
def devpi(new_index: Callable[[str], Index]) -> Index:
    """One index for all tests; each test has its own version of the package."""
    return new_index("test")


def test_uploads_once_and_serves_hashes(devpi: Index, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path)
    assert publish.upload(devpi, NAME, [wheel], tmp_path / "log") == [wheel.name]
    assert publish.upload(devpi, NAME, [wheel], tmp_path / "log") == []
    assert devpi.files(NAME)[wheel.name] == sha256(wheel)


def test_pep_691(devpi: Index, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, version="1.1")
    publish.upload(devpi, NAME, [wheel], tmp_path / "log")
    accept = {"Accept": "application/vnd.pypi.simple.v1+json"}
    request = urllib.request.Request(f"{devpi.simple}demo-ext/", headers=accept)
    with urllib.request.urlopen(request) as answer:
        assert answer.headers["Content-Type"].startswith("application/vnd.pypi.simple.v1+json")
        assert json.load(answer)["meta"]["api-version"].startswith("1.")


def test_other_bytes_under_a_used_name_are_refused(devpi: Index, tmp_path: Path) -> None:
    publish.upload(devpi, NAME, [make_wheel(tmp_path / "a", version="1.2")], tmp_path / "log")
    other = make_wheel(tmp_path / "b", version="1.2", text="changed")
    with pytest.raises(Problem, match=r"with other bytes.*raise the version"):
        publish.upload(devpi, NAME, [other], tmp_path / "log")


def test_wrong_password(devpi: Index, tmp_path: Path) -> None:
    wrong = dataclasses.replace(devpi, password="not-the-password")
    with pytest.raises(Problem, match="refuses the"):
        publish.upload(wrong, NAME, [make_wheel(tmp_path, version="1.3")], tmp_path / "log")
    assert "not-the-password" not in (tmp_path / "log").read_text()


def test_index_down(tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/"
        down = Index("embedded", url, url, "password")
        with pytest.raises(Problem, match="does not answer"):
            publish.upload(down, NAME, [make_wheel(tmp_path)], tmp_path / "log")


def test_upload_cut_off_halfway_is_completed_by_the_next_run(devpi: Index, tmp_path: Path) -> None:
    first = make_wheel(tmp_path, version="1.4")
    second = make_wheel(tmp_path, version="1.5", text="x" * 400_000)
    with cutting_proxy(devpi.upload, after=200_000) as url:
        cut = dataclasses.replace(devpi, upload=url)
        with pytest.raises(Problem, match="Run the same command"):
            publish.upload(cut, NAME, [first, second], tmp_path / "log")
    assert first.name in devpi.files(NAME)
    assert second.name not in devpi.files(NAME)
    assert publish.upload(devpi, NAME, [first, second], tmp_path / "log") == [second.name]


@contextmanager
def cutting_proxy(upstream: str, after: int) -> Iterator[str]:
    """Hands connections on to `upstream`, and cuts each off that sends more than `after` bytes."""
    parts = urlsplit(upstream)
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            with client, socket.create_connection((parts.hostname, parts.port)) as server:
                client.settimeout(0.5)
                sent = 0
                while sent <= after:
                    try:
                        data = client.recv(65536)
                    except TimeoutError:
                        break
                    if not data:
                        break
                    sent += len(data)
                    server.sendall(data)
                if sent <= after:
                    server.settimeout(30)
                    client.sendall(server.recv(65536))

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    port = listener.getsockname()[1]
    yield f"http://127.0.0.1:{port}{parts.path}"
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join()


def judged(release: Release) -> Path:
    """A wheel that was built, gated and smoke-tested, as far as the record knows."""
    wheel = make_wheel(release.wheelhouse, version="2.0")
    digest = sha256(wheel)
    for step, key in (("repair", "wheel"), ("gate", "file"), ("smoke", "wheel")):
        task = Task(step, "x86_64", {key: digest}, lambda _: Result())
        outputs = [wheel] if step == "repair" else []
        release.state.passed(task, Result(outputs), 1.0)
    return wheel


def test_a_wheel_altered_after_the_gate_is_refused(release: Release) -> None:
    wheel = judged(release)
    publish.check_judged(release, {"x86_64": wheel})
    wheel.write_bytes(wheel.read_bytes() + b"\0")
    with pytest.raises(Problem, match="is not what passed `gate`"):
        publish.check_judged(release, {"x86_64": wheel})
    with pytest.raises(Problem, match=r"(?s)was altered after repair/x86_64.*delete"):
        release.state.outputs("repair/x86_64")


def test_the_password_is_kept_private(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    index._initialised(folder, tmp_path / "log")
    assert (folder / "password").stat().st_mode & 0o077 == 0
    assert (folder / "password").read_text() not in (tmp_path / "log").read_text()
    assert index._initialised(folder, tmp_path / "log") == (folder / "password").read_text()


def test_a_wheel_that_nothing_verified_is_refused(release: Release) -> None:
    for build in release.builds[1:]:
        task = Task("verify", f"{build.name}-torch2.15-link", {}, lambda _: Result())
        release.state.passed(task, Result(), 1.0)
    name = release.builds[0].name
    with pytest.raises(Problem, match=f"verified the wheel {name}; run `python -m ci verify`"):
        publish.check_verified(release)


def test_a_failed_check_is_refused(release: Release) -> None:
    publish.check_nothing_failed(release)
    task = Task("verify", "x86_64-torch2.15-link", {}, lambda _: Result())
    release.state.failed(task, "a symbol is missing", 1.0)
    with pytest.raises(Problem, match=r"`verify/x86_64-torch2\.15-link` failed; mend it"):
        publish.check_nothing_failed(release)

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
from wheelyard import steps
from wheelyard.core.digest import sha256
from wheelyard.plan.plan import Options, Plan
from wheelyard.problem import Problem
from wheelyard.steps import publish
from wheelyard.tools import index
from wheelyard.tools.index import Index
from workspaces import workspace

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


def test_the_password_is_kept_private(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    index.initialised(folder, tmp_path / "log")
    assert (folder / "password").stat().st_mode & 0o077 == 0
    assert (folder / "password").read_text() not in (tmp_path / "log").read_text()
    assert index.initialised(folder, tmp_path / "log") == (folder / "password").read_text()


def test_nothing_is_published_that_was_not_gated_verified_and_smoke_tested(plan: Plan) -> None:
    jobs = steps.planned(plan, "publish").jobs
    judged = {name for name in jobs if name.split("/")[0] in ("gate", "verify", "smoke")}
    assert {name.split("/")[0] for name in judged} == {"gate", "verify", "smoke"}
    assert judged <= set(jobs["publish/embedded"].after)


def test_on_github_every_runner_has_to_have_passed(plan: Plan) -> None:
    options = Options(place="github", index="pypi")
    there = dataclasses.replace(plan, options=options)
    (job,) = publish.jobs(there)
    for wheel in plan.wheels:
        for cell in plan.matrix.verify.run:
            assert f"verify/{wheel.name}-torch{cell.torch}-python{cell.python}" in job.after
    assert {"gpu/x86_64", "attest/pypi"} <= set(job.after)


def test_a_public_index_needs_evidence_for_these_bytes(tmp_path: Path) -> None:
    wheel, file = make_wheel(tmp_path), tmp_path / "gpu.json"
    seen = {"sha256": sha256(wheel), "gpu": {"name": "H200"}, "passed": True, "checks": 3}
    for change, message in (({}, None), ({"sha256": "0"}, "no GPU evidence for demo_ext")):
        file.write_text(json.dumps(seen | change))
        made = {"needing_evidence": [wheel], "evidence_of_jobs": [file]}
        place = workspace(tmp_path, made, evidence={})
        if message:
            with pytest.raises(Problem, match=message):
                publish.check_evidence(place)
        else:
            publish.check_evidence(place)

"""Tests publishing to a real devpi: no file is sent twice, none is changed, and every fault names its cure."""

import contextlib
import dataclasses
import itertools
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from demo_wheel import make_wheel
from recorded import job, proof, workspace
from rehearsal import STAND_INS
from wheelyard import steps
from wheelyard.core.digest import sha256
from wheelyard.core.record import Record
from wheelyard.plan.plan import Plan
from wheelyard.problem import Problem
from wheelyard.steps import publish
from wheelyard.tools import index
from wheelyard.tools.index import Index

NAME = "demo_ext"


@pytest.fixture(scope="module")
def devpi(new_index: Callable[[str], Index]) -> Index:
    """Returns one index for all tests; each test has its own version of the package."""
    return new_index("test")


def send(where: Index, files: list[Path], folder: Path) -> list[str]:
    return publish.upload(where, NAME, {file: sha256(file) for file in files}, folder / "log")


@contextmanager
def faulty_proxy(
    upstream: str, drop_every: int | None = None, cut_after: int | None = None
) -> Iterator[str]:
    """Forwards connections to `upstream`, but drops every `drop_every`th one, or cuts off one that sends more than
    `cut_after` bytes."""
    parts, count = urlsplit(upstream), itertools.count(1)
    listener = socket.create_server(("127.0.0.1", 0))

    def hand_on(source: socket.socket, target: socket.socket, limit: int | None) -> None:
        sent = 0
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sent += len(data)
                if limit is not None and sent > limit:
                    source.shutdown(socket.SHUT_RDWR)
                    break
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def connected(client: socket.socket) -> None:
        with client, socket.create_connection((parts.hostname, parts.port)) as server:
            back = threading.Thread(target=hand_on, args=(server, client, None))
            back.start()
            hand_on(client, server, cut_after)
            back.join()

    def serve() -> None:
        with ThreadPoolExecutor() as pool:
            while True:
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                if drop_every and next(count) % drop_every == 0:
                    client.close()
                else:
                    pool.submit(connected, client)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        with listener:
            listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_what_is_served_is_what_was_recorded(devpi: Index, tmp_path: Path) -> None:
    """A file that is swapped between its hashing and twine's reading is detected."""
    wheel, other = (make_wheel(tmp_path / n, version="1.9", text=n) for n in ("good", "evil"))
    recorded = {wheel: sha256(wheel)}
    wheel.write_bytes(other.read_bytes())
    with pytest.raises(Problem, match=r"the index test has demo_ext-1.9.* with other bytes"):
        publish.upload(devpi, NAME, recorded, tmp_path / "log")


def test_without_this_workflows_provenance_nothing_is_sent(
    devpi: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = make_wheel(tmp_path, version="1.8")
    public, signed = dataclasses.replace(devpi, is_public=True), tmp_path / "signed"
    told = {
        "GITHUB_REPOSITORY": "me/mine",
        "GITHUB_REF": "refs/tags/v1.8",
        "GITHUB_SHA": "0" * 40,
        "GITHUB_WORKFLOW_REF": "me/mine/.github/workflows/release.yml@refs/tags/v1.8",
        "GH_SIGNED": str(signed),
        "PATH": f"{STAND_INS}:{os.environ['PATH']}",
    }
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    asked = (
        "--repo me/mine --signer-workflow me/mine/.github/workflows/release.yml "
        f"--source-ref refs/tags/v1.8 --source-digest {'0' * 40} --deny-self-hosted-runners"
    )
    signed.write_text(f"{'1' * 64} {asked}\n")
    with pytest.raises(Problem, match=r"(?s)verifying the provenance of .*no attestation"):
        send(public, [wheel], tmp_path)
    assert wheel.name not in devpi.files(NAME)
    signed.write_text(f"{sha256(wheel)} {asked}\n")
    assert send(public, [wheel], tmp_path) == [wheel.name]


def test_a_job_works_on_a_copy_of_what_was_hashed(tmp_path: Path) -> None:
    wheel, other = (make_wheel(tmp_path / n, text=n) for n in ("good", "evil"))
    place = workspace(tmp_path, {"wheel": [wheel]})
    expected, given = wheel.read_bytes(), place.file("wheel")
    wheel.write_bytes(other.read_bytes())
    assert given.read_bytes() == expected
    assert [file.name for file in given.parent.iterdir()] == [wheel.name], (
        "a container sees no more"
    )
    with pytest.raises(Problem, match="changed while the release ran"):
        place.file("wheel")


def test_uploads_once_and_serves_hashes(devpi: Index, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path)
    assert send(devpi, [wheel], tmp_path) == [wheel.name]
    assert send(devpi, [wheel], tmp_path) == []
    assert devpi.files(NAME)[wheel.name] == sha256(wheel)


def test_other_bytes_under_a_used_name_are_refused(devpi: Index, tmp_path: Path) -> None:
    send(devpi, [make_wheel(tmp_path / "a", version="1.2")], tmp_path)
    other = make_wheel(tmp_path / "b", version="1.2", text="changed")
    with pytest.raises(Problem, match=r"with other bytes.*raise the version"):
        send(devpi, [other], tmp_path)


def test_wrong_password(devpi: Index, tmp_path: Path) -> None:
    wrong = dataclasses.replace(devpi, password="not-the-password")
    with pytest.raises(Problem, match=r"HTTPError: 40[13] "):
        send(wrong, [make_wheel(tmp_path, version="1.3")], tmp_path)
    assert "not-the-password" not in (tmp_path / "log").read_text()


def test_index_down(tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/"
        down = Index("embedded", url, url, "password")
        with pytest.raises(Problem, match="does not answer"):
            send(down, [make_wheel(tmp_path)], tmp_path)


def test_upload_cut_off_halfway_is_completed_by_the_next_run(devpi: Index, tmp_path: Path) -> None:
    first = make_wheel(tmp_path, version="1.4")
    second = make_wheel(tmp_path, version="1.5", text="x" * 400_000)
    with faulty_proxy(devpi.upload, cut_after=200_000) as address:
        cut = dataclasses.replace(devpi, upload=address + urlsplit(devpi.upload).path)
        with pytest.raises(Problem, match="Run the same command"):
            send(cut, [first, second], tmp_path)
    assert first.name in devpi.files(NAME)
    assert second.name not in devpi.files(NAME)
    assert send(devpi, [first, second], tmp_path) == [second.name]


def test_waits_until_the_index_serves_what_it_took(devpi: Index, tmp_path: Path) -> None:
    """An index behind a cache serves an old listing for a while."""
    wheel, old = make_wheel(tmp_path, version="1.6"), devpi.files(NAME)
    began = time.monotonic()

    @dataclasses.dataclass(frozen=True)
    class Cached(Index):
        def files(self, project: str) -> dict[str, str]:
            return old if time.monotonic() - began < 5 else super().files(project)

    behind_cache = Cached(devpi.name, devpi.upload, devpi.simple, devpi.password)
    assert send(behind_cache, [wheel], tmp_path) == [wheel.name]
    # A second run that sees the old listing sends the file again, and the refusal is no failure.
    began = time.monotonic()
    assert send(behind_cache, [wheel], tmp_path) == [wheel.name]


def test_an_index_that_drops_every_third_connection(devpi: Index, tmp_path: Path) -> None:
    wheels = [make_wheel(tmp_path, version=f"1.7.{i}") for i in range(3)]
    with faulty_proxy(devpi.upload, drop_every=3) as address:
        path = urlsplit(devpi.simple).path
        flaky = dataclasses.replace(
            devpi, upload=address + urlsplit(devpi.upload).path, simple=address + path
        )
        sent = send(flaky, wheels, tmp_path)
        assert sent == [wheel.name for wheel in wheels]
        assert all(flaky.files(NAME)[wheel.name] == sha256(wheel) for wheel in wheels)


@pytest.mark.parametrize("to", ["testpypi", "pypi", "own"])
def test_what_comes_from_a_compiler_cache_stays_here(
    plan: Plan, record: Record, tmp_path: Path, to: str
) -> None:
    trial = plan.asked(cache=tmp_path, index=to)
    with pytest.raises(Problem, match=f"what goes to {to} is built without one: leave it out"):
        publish.check(trial, record)
    publish.check(plan.asked(cache=tmp_path), record)


def test_only_an_index_on_this_machine_stands_in(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("INDEX_PYPI", "https://elsewhere.example/legacy/")
    with pytest.raises(Problem, match="INDEX_PYPI redirects pypi"), index.ready("pypi", tmp_path):
        pass


def test_nothing_is_published_that_was_not_gated_verified_and_smoke_tested(plan: Plan) -> None:
    jobs = steps.planned(plan, "publish").jobs
    judged = {name for name in jobs if name.split("/")[0] in ("gate", "verify", "smoke")}
    assert {name.split("/")[0] for name in judged} == {"gate", "verify", "smoke"}
    assert judged <= set(jobs["publish/embedded"].after)


def test_on_github_every_runner_has_to_have_passed(plan: Plan) -> None:
    (job,) = publish.jobs(plan.asked(place="github", index="pypi"))
    for wheel in plan.wheels:
        for cell in plan.matrix.verify.run:
            assert f"verify/{wheel.name}-{cell.name}" in job.after
    assert {"gpu/x86_64", "attest/files"} <= set(job.after)


ASKED = {
    "smoke": {"command": ""},
    "program": proof()["program"],
    "evidence": {},
    "torches": ["2.11"],
    "gpu_evidence": ["x86_64"],
}


def test_a_public_index_needs_evidence_for_these_bytes(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path)
    tested, seen = tmp_path / "smoke.json", tmp_path / "gpu.json"
    tested.write_text(json.dumps(proof(gpu=None)))
    made = {"needing_evidence": [wheel], "evidence_of_jobs": [seen], "smoke_tests": [tested]}

    def check(**changes: object) -> None:
        seen.write_text(json.dumps(proof(**{"sha256": sha256(wheel), **changes})))
        publish.check_evidence(workspace(tmp_path, made, **ASKED))

    check()
    with pytest.raises(Problem, match="no GPU evidence for demo_ext"):
        check(sha256="0")
    with pytest.raises(
        Problem, match=r"(?s)no GPU evidence for demo_ext.*gpu\.json was made with other"
    ):
        check(spec="an easier one")


@pytest.mark.parametrize(
    ("lacks", "message"),
    [("needing_evidence", "has 0 wheels for them"), ("smoke_tests", "no smoke test here has said")],
)
def test_no_check_of_evidence_is_true_of_nothing(tmp_path: Path, lacks: str, message: str) -> None:
    wheel, tested = make_wheel(tmp_path), tmp_path / "smoke.json"
    tested.write_text(json.dumps(proof(sha256=sha256(wheel))))
    made = {"evidence_of_jobs": [tested], "smoke_tests": [tested], "needing_evidence": [wheel]}
    made[lacks] = []
    with pytest.raises(Problem, match=message):
        publish.check_evidence(workspace(tmp_path, made, **ASKED))


def test_a_folder_asks_for_as_much_as_an_index(plan: Plan, tmp_path: Path) -> None:
    (job,) = publish.jobs(plan.asked(index=publish.FOLDER, site=tmp_path))
    (embedded,) = publish.jobs(plan)
    assert set(embedded.after) <= set(job.after)
    assert job.inputs["gpu_evidence"] == ["x86_64"]


def test_a_folder_gets_the_release_when_its_evidence_is_there(tmp_path: Path) -> None:
    wheel, site, seen = make_wheel(tmp_path), tmp_path / "site", tmp_path / "gpu.json"
    seen.write_text(json.dumps(proof(sha256="of another")))
    made = {
        "files": [wheel],
        "needing_evidence": [wheel],
        "evidence_of_jobs": [seen],
        "smoke_tests": [seen],
    }
    told = {**ASKED, "index": publish.FOLDER, "site": str(site), "address": "", "project": NAME}
    with pytest.raises(Problem, match="no GPU evidence for demo_ext"):
        publish.run(job("publish/folder"), workspace(tmp_path, made, **told))
    assert not site.exists()
    seen.write_text(json.dumps(proof(sha256=sha256(wheel))))
    said = publish.run(job("publish/folder"), workspace(tmp_path, made, **told))
    assert said == f"1 file added to the index in {site}"
    assert (site / wheel.name).read_bytes() == wheel.read_bytes()

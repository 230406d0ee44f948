"""Tests the files that a build is given: fetched once from a real HTTP server, checked, kept; and a clear message for
each failure."""

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import pytest
from recorded import workspace
from wheelyard.core import patience
from wheelyard.problem import Problem
from wheelyard.tools import downloads

DATA = b"an archive" * 1000
DIGEST = sha256(DATA).hexdigest()


class Handler(http.server.BaseHTTPRequestHandler):
    """A handler that gives DATA, or what the path asks for, and records the requests."""

    asked: list[str]
    elsewhere = ""

    def do_GET(self) -> None:
        self.asked.append(self.path)
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", self.elsewhere)
            self.end_headers()
        elif self.path == "/busy" and self.asked.count("/busy") < 3:
            self.send_error(503)
        elif self.path.startswith("/missing"):
            self.send_error(404)
        else:
            self.send_response(200)
            self.send_header("Content-Length", str(len(DATA)))
            self.end_headers()
            self.wfile.write(DATA[:-1] if self.path == "/cut" else DATA)

    def log_message(self, *_: object) -> None: ...


@contextmanager
def served(elsewhere: str = "") -> Iterator[tuple[str, list[str]]]:
    """Yields the address of a server, and the requests that it got."""
    asked = list[str]()
    handler = type("Own", (Handler,), {"asked": asked, "elsewhere": elsewhere})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "PAUSES", (0, 0, 0))


def given(folder: Path, job: str, **files: list[str]) -> Path:
    """Returns the folder that is mounted in the container of a job."""
    own = workspace(folder, {}, downloads={name.replace("_", "."): f for name, f in files.items()})
    own = type(own)(**{**vars(own), "folder": folder / job})
    (option,) = downloads.mounts(own)
    shown = option.removeprefix("--volume=").removesuffix(":/downloads:ro")
    assert shown.startswith(str(folder / job)), option
    return Path(shown)


def test_it_is_fetched_once_and_kept_by_its_digest(tmp_path: Path) -> None:
    with served() as (host, asked):
        for job in ("sdist", "wheel"):
            folder = given(tmp_path, job, a_tgz=[f"{host}/a.tgz", DIGEST])
            assert (folder / "a.tgz").read_bytes() == DATA
        assert asked == ["/a.tgz"]
        (tmp_path / "downloads" / DIGEST).write_bytes(b"half of it")  # before a power failure
        given(tmp_path, "later", a_tgz=[f"{host}/a.tgz", DIGEST])
        assert asked == ["/a.tgz", "/a.tgz"]
    given(tmp_path, "offline", a_tgz=[f"{host}/a.tgz", DIGEST])


def test_without_downloads_nothing_is_mounted(tmp_path: Path) -> None:
    assert downloads.mounts(workspace(tmp_path, {}, downloads={})) == []
    assert not (tmp_path / "downloads").exists()


def test_redirects_to_another_host_are_followed(tmp_path: Path) -> None:
    with served() as (other, _), served(f"{other}/there") as (host, _):
        downloads.fetch(f"{host}/moved", DIGEST, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == DATA


def test_a_busy_server_is_asked_again(tmp_path: Path) -> None:
    with served() as (host, asked):
        downloads.fetch(f"{host}/busy", DIGEST, tmp_path / "file")
    assert len(asked) == 3


@pytest.mark.parametrize(
    ("path", "attempts", "message"),
    [
        ("changed", 1, rf"changed gives 10,000 bytes with the sha256 {DIGEST}; .* asks for 0000"),
        ("missing", 1, "missing answers 404 Not Found; build.downloads of the matrix names it"),
        ("cut", 4, r"cut cannot be fetched \(IncompleteRead\(0 bytes read, 1 more expected\)\)"),
    ],
)
def test_what_goes_wrong_is_said(tmp_path: Path, path: str, attempts: int, message: str) -> None:
    with served() as (host, asked), pytest.raises(Problem, match=message):
        given(tmp_path, "job", file=[f"{host}/{path}", "0" * 64])
    assert len(asked) == attempts
    assert not list((tmp_path / "downloads").iterdir()), "what is wrong is not kept"


def test_without_a_network_the_host_is_named(tmp_path: Path) -> None:
    """The host that a redirect led to is named too: a list of hosts that may be reached must have both."""
    with served() as (gone, _):
        pass
    with pytest.raises(Problem, match=rf"{gone}/x cannot be fetched \(.*refused.*\); run the same"):
        downloads.fetch(f"{gone}/x", DIGEST, tmp_path / "file")
    other = gone.removeprefix("http://")
    with (
        served(f"{gone}/y") as (host, _),
        pytest.raises(Problem, match=rf"{host}/moved, which leads to {other}, cannot be fetched"),
    ):
        downloads.fetch(f"{host}/moved", DIGEST, tmp_path / "file")

"""The package indexes: the embedded one (devpi on loopback), one that the matrix names, TestPyPI and PyPI."""

import base64
import dataclasses
import http.client
import json
import os
import secrets
import shutil
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wheelyard.core import environment, shell
from wheelyard.core.digest import sha256
from wheelyard.core.disk import flush
from wheelyard.core.patience import ANSWER_SECONDS, Broken, patiently
from wheelyard.problem import Problem

START_SECONDS = 300  # a busy machine may take minutes; one that ends is noticed at once
USER = "root"
LOOPBACK = ("127.0.0.1", "::1", "localhost")
PROGRAMS = Path(sys.executable).parent


@dataclass(frozen=True)
class Index:
    """An index: the address to upload to, and the one that pip reads."""

    name: str
    upload: str
    simple: str
    password: str | None = None  # None: twine finds the credentials by itself
    # The index of one torch and CUDA: pip takes the highest version that it finds, so each must be alone in its own.
    part: Callable[[str], "Index"] | None = None
    store: Path | None = None  # the embedded one's files
    is_public: bool = False

    def files(self, project: str) -> dict[str, str]:
        """The sha256 of each file of a project that the index has."""
        accept = {"Accept": "application/vnd.pypi.simple.v1+json"}
        request = urllib.request.Request(
            f"{self.simple}{project.replace('_', '-')}/", headers=accept
        )
        listing = patiently(lambda: self._ask(request))
        return {file["filename"]: file["hashes"].get("sha256", "") for file in listing["files"]}

    def address(self, name: str, digest: str) -> str:
        """The address of a file in the embedded index; pip checks the digest at its end."""
        return f"{self.upload}+f/{digest[:3]}/{digest[3:16]}/{urllib.parse.quote(name)}#sha256={digest}"

    def put_back(self, file: Path, digest: str) -> None:
        """Restores what the embedded index took just before the power went: it does not wait for the disk."""
        stored = self.store and self.store / "+f" / digest[:3] / digest[3:16] / file.name
        if stored and stored.exists() and sha256(stored) != digest:
            shutil.copyfile(file, stored)

    def _ask(self, request: urllib.request.Request) -> Any:
        try:
            with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return {"files": []}
            kind = Broken if error.code >= 500 else Problem
            raise kind(f"the index {self.name} answers {error.code}: {error.reason}") from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise Broken(
                f"the index {self.name} does not answer ({error}); "
                "run the same command again when it does"
            ) from None


@contextmanager
def ready(
    name: str, folder: Path, stage: str, log: Path, own: Mapping[str, str] | None = None
) -> Iterator[Index]:
    """The index of that name; the embedded one lies in `folder` and runs as long as it is in use."""
    if name == "own":
        yield named(own or {})
        return
    if name == "embedded":
        with embedded(folder, stage, log) as index:
            yield index
        return
    variable = f"INDEX_{name.upper()}"
    if stand_in := os.environ.get(variable):  # a rehearsal's
        if urllib.parse.urlsplit(stand_in).hostname not in LOOPBACK:
            raise Problem(
                f"{variable} sends what is for {name} to {stand_in}; only an index on this machine may "
                "stand in for it: unset the variable"
            )
        yield Index(f"{name} (rehearsed)", stand_in, f"{stand_in}+simple/", is_public=True)
        return
    import twine.utils  # here, as the jobs that only sign do not have it

    public = twine.utils.TEST_REPOSITORY if name == "testpypi" else twine.utils.DEFAULT_REPOSITORY
    simple = public.replace("/legacy/", "/simple/").replace("upload.", "")
    yield Index(name, public, simple, is_public=True)


def named(own: Mapping[str, str]) -> Index:
    """The index that the matrix names, by addresses with {index} in place of cu130-torch2.15, or of `all`."""
    upload, simple = own.get("upload", ""), own.get("simple", "")
    if "{index}" not in upload or "{index}" not in simple:
        raise Problem(
            "publish.upload and publish.simple of the matrix must say where an index is, with {index} in them:\n"
            '  [publish]\n  upload = "https://host/{index}/"\n  simple = "https://host/{index}/simple/"'
        )

    def part(of: str) -> Index:
        return Index("own", upload.format(index=of), simple.format(index=of))

    return dataclasses.replace(part("all"), part=part)


@contextmanager
def embedded(folder: Path, stage: str, log: Path) -> Iterator[Index]:
    """Starts devpi, makes the stage of this source state if it is new, and stops devpi again.

    A tree changes while its version stays the same, which no index allows. So each state of the
    sources has a stage of its own.
    """
    password = initialised(folder, log)
    with server(folder, log) as url:

        def staged(name: str) -> Index:
            make_stage(url, name, password)
            place = f"{url}/{USER}/{name}/"
            store = folder / "+files" / USER / name
            return Index("embedded", place, f"{place}+simple/", password, store=store)

        part = lambda of: staged(f"{stage}-{of}")  # noqa: E731
        yield dataclasses.replace(staged(stage), part=part)
    flush(folder)


def stage_of(sdist: str) -> str:
    """The stage for a source state, by its sdist's digest."""
    return f"state-{sdist[:12]}"


def initialised(folder: Path, log: Path) -> str:
    """The server's password, made with its data folder on first use; half a folder never counts."""
    if not folder.exists():
        new = folder.with_suffix(".new")
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(parents=True)
        secret = {"DEVPISERVER_ROOT_PASSWD": secrets.token_urlsafe(24)}
        command = [PROGRAMS / "devpi-init", "--serverdir", new, "--no-root-pypi"]
        shell.run(command, log, what="making the embedded index", env=secret)
        (new / "password").touch(mode=0o600)
        (new / "password").write_text(*secret.values())
        flush(new)
        new.rename(folder)
    return (folder / "password").read_text()


@dataclass
class Server:
    url: str
    process: subprocess.Popen[bytes]
    users: int = 0


_servers: dict[Path, Server] = {}  # by the folder that each serves
_turn = threading.Lock()


@contextmanager
def server(folder: Path, log: Path) -> Iterator[str]:
    """The address of the folder's devpi; jobs that need it at the same time share one."""
    with _turn:
        shared = _servers.get(folder) or _start(folder, log)
        _servers[folder] = shared
        shared.users += 1
    try:
        yield shared.url
    finally:
        with _turn:
            shared.users -= 1
            if shared.users == 0:
                del _servers[folder]
                _stop(shared)


def _start(folder: Path, log: Path) -> Server:
    _take_back_half_a_write(folder)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    command = [PROGRAMS / "devpi-server", f"--serverdir={folder}", "--host=127.0.0.1"]
    with log.open("ab") as output:
        given = environment.make(folder)
        process = shell.start([*map(str, command), f"--port={port}"], output, env=given)
    started = Server(url, process)
    try:
        _wait_for(url, process, log)
    except BaseException:
        _stop(started)
        raise
    return started


def _take_back_half_a_write(folder: Path) -> None:
    """Undoes a write that a kill cut off. SQLite would at the first look, but devpi's look may not write.

    Where it cannot be done, devpi says what is wrong.
    """
    database = f"{(folder / '.sqlite').absolute().as_uri()}?mode=rw"
    with suppress(sqlite3.Error), closing(sqlite3.connect(database, uri=True)) as opened:
        opened.execute("PRAGMA schema_version").fetchone()


def _stop(server: Server) -> None:
    server.process.terminate()
    server.process.wait()
    shell.ended(server.process)


def _wait_for(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(START_SECONDS * 5):
        if server.poll() is not None:
            break
        try:
            _call(f"{url}/+api")
        except OSError:
            time.sleep(0.2)
        else:
            return
    raise Problem(f"the embedded index does not start:\n{shell.tail(log)}")


def make_stage(url: str, name: str, password: str) -> None:
    """Creates the stage if it is missing. It asks first: the server takes seconds for a login."""
    try:
        if name in _call(f"{url}/{USER}")["result"]["indexes"]:
            return
        login = _call(f"{url}/+login", "POST", {"user": USER, "password": password})["result"]
        auth = base64.b64encode(f"{USER}:{login['password']}".encode()).decode()
        settings = {"type": "stage", "bases": [], "volatile": False}
        _call(f"{url}/{USER}/{name}", "PUT", settings, {"X-Devpi-Auth": auth})
    except OSError as error:
        raise Problem(
            f"the embedded index does not make its stage {name} ({error}); run the same command again"
        ) from None


def _call(
    url: str,
    method: str = "GET",
    body: dict[str, Any] | None = None,
    headers: dict[str, str] | None = None,
) -> Any:
    data = json.dumps(body).encode() if body is not None else None
    types = {"Accept": "application/json", "Content-Type": "application/json"}
    request = urllib.request.Request(url, data, {**types, **(headers or {})}, method=method)
    with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as answer:
        return json.load(answer)

"""Describes the package indexes for releases: the embedded one, which is served here, one named in the matrix, TestPyPI
and PyPI."""

import base64
import dataclasses
import http.client
import http.server
import json
import os
import re
import secrets
import tempfile
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

from wheelyard.core.disk import flush
from wheelyard.core.patience import ANSWER_SECONDS, Broken, patiently
from wheelyard.problem import Problem
from wheelyard.tools import static_index

USER = "root"
JSON = "application/vnd.pypi.simple.v1+json"
LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True)
class Index:
    """An index: the address to upload to, and the one that pip reads."""

    name: str
    upload: str
    simple: str
    password: str | None = None  # None: twine finds the credentials by itself
    # Returns the index of one torch and CUDA. Each is separate, as pip takes the highest version that an index has.
    part: Callable[[str], "Index"] | None = None
    is_public: bool = False

    def files(self, project: str) -> dict[str, str]:
        """Returns the sha256 of each file that the index has of a project."""
        accept = {"Accept": JSON}
        address = f"{self.simple}{canonicalize_name(project)}/"
        request = urllib.request.Request(address, headers=accept)
        listing = patiently(lambda: self._ask(request))
        return {file["filename"]: file["hashes"].get("sha256", "") for file in listing["files"]}

    def address(self, name: str, digest: str) -> str:
        """Returns the address of a file in the embedded index, ending in the digest, which pip checks."""
        return f"{self.upload}{urllib.parse.quote(name)}#sha256={digest}"

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
    name: str, folder: Path, sdist: str = "", own: Mapping[str, str] | None = None
) -> Iterator[Index]:
    """Yields the index of that name. The embedded one is in `folder`, and has a stage for the sdist with this
    digest."""
    if name == "own":
        yield named(own or {})
        return
    if name == "embedded":
        with embedded(folder, sdist) as index:
            yield index
        return
    variable = f"INDEX_{name.upper()}"
    if stand_in := os.environ.get(variable):  # set in a rehearsal
        if urllib.parse.urlsplit(stand_in).hostname not in LOOPBACK:
            raise Problem(
                f"{variable} redirects {name} to {stand_in}; only an index on this machine may "
                "stand in for it: unset the variable"
            )
        yield Index(f"{name} (rehearsed)", stand_in, f"{stand_in}+simple/", is_public=True)
        return
    import twine.utils  # imported here, as the jobs that only sign do not have it

    public = twine.utils.TEST_REPOSITORY if name == "testpypi" else twine.utils.DEFAULT_REPOSITORY
    simple = public.replace("/legacy/", "/simple/").replace("upload.", "")
    yield Index(name, public, simple, is_public=True)


def named(own: Mapping[str, str]) -> Index:
    """Returns the index that the matrix names, by addresses in which {index} stands for cu130-torch2.15, or for
    `all`."""
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
def embedded(folder: Path, sdist: str) -> Iterator[Index]:
    """Serves the embedded index of one state of the sources.

    A tree changes while its version stays the same, which no index allows. So each state of the sources has a folder of
    its own, named by its sdist's digest.
    """
    stage = f"state-{sdist[:12]}"
    (folder / stage).mkdir(parents=True, exist_ok=True)
    password = secrets.token_urlsafe()  # for uploads; every user of the machine may read
    with _Server(folder, f"{USER}:{password}") as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        place = f"http://127.0.0.1:{server.server_port}/{stage}/"
        whole = Index("embedded", place, f"{place}simple/", password)

        def part(of: str) -> Index:
            return dataclasses.replace(whole, simple=f"{whole.simple}{of}/")

        try:
            yield dataclasses.replace(whole, part=part)
        finally:
            server.shutdown()
    flush(folder)


class _Server(http.server.ThreadingHTTPServer):
    def __init__(self, folder: Path, uploader: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.folder = folder
        self.allowed = f"Basic {base64.b64encode(uploader.encode()).decode()}"

    def handle_error(self, *_: object) -> None:
        """Ignores a client that has left, such as a pip that was stopped."""


class _Handler(http.server.SimpleHTTPRequestHandler):
    server: _Server
    extensions_map = http.server.SimpleHTTPRequestHandler.extensions_map | {".json": JSON}

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments, directory=arguments[-1].folder)

    def do_GET(self) -> None:
        if self.path.endswith("/") and JSON in self.headers.get("Accept", ""):
            self.path += "index.json"
        super().do_GET()

    def do_POST(self) -> None:
        form = self.rfile.read(int(self.headers["Content-Length"]))
        is_allowed = self.headers["Authorization"] == self.server.allowed
        self.send_response(self._take(form) if is_allowed else HTTPStatus.FORBIDDEN)
        self.end_headers()

    def _take(self, form: bytes) -> HTTPStatus:
        """Adds a file. It is the last part of the form, and its name tells the project."""
        boundary = f"--{self.headers.get_boundary('')}".encode()
        start, end = form.rindex(boundary + b"\r\n"), form.rindex(b"\r\n" + boundary + b"--")
        content = form.index(b"\r\n\r\n", start) + 4
        name = re.search(r'filename="([\w.+!-]+)"', form[start:content].decode(), re.ASCII)
        if not name:
            return HTTPStatus.BAD_REQUEST
        site = Path(self.translate_path(self.path))
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, name[1])
            file.write_bytes(memoryview(form)[content:end])
            try:
                static_index.append(site, file.name.split("-")[0], [file])
            except Problem:  # it has a file of that name with other bytes
                return HTTPStatus.CONFLICT
        return HTTPStatus.OK

    def log_message(self, *_: object) -> None: ...

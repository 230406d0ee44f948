"""Serves a folder of package indexes on loopback, and accepts uploads from twine to any of them, as PyPI does."""

import base64
import http.server
import re
import secrets
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any

from wheelyard.problem import Problem
from wheelyard.tools import static_index

JSON = "application/vnd.pypi.simple.v1+json"


@contextmanager
def serving(folder: Path, user: str) -> Iterator[tuple[str, str]]:
    """Yields the address, which every user of the machine may read, and the password for uploads."""
    password = secrets.token_urlsafe()
    with _Server(folder, f"{user}:{password}") as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", password
        finally:
            server.shutdown()


class _Server(http.server.ThreadingHTTPServer):
    def __init__(self, folder: Path, uploader: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.folder = folder
        self.allowed = f"Basic {base64.b64encode(uploader.encode()).decode()}"

    def handle_error(self, *_: object) -> None:
        """Ignores a client that has left, such as a pip that was stopped."""


class _Handler(http.server.SimpleHTTPRequestHandler):
    server: _Server

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments, directory=arguments[-1].folder)

    def guess_type(self, path: Any) -> str:
        return JSON if str(path).endswith(".json") else super().guess_type(path)

    def do_GET(self) -> None:
        if self.path.endswith("/") and JSON in self.headers.get("Accept", ""):
            self.path += "index.json"
        super().do_GET()

    def do_POST(self) -> None:
        form = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(self._take(form) if self._is_allowed() else HTTPStatus.FORBIDDEN)
        self.end_headers()

    def _is_allowed(self) -> bool:
        return self.headers["Authorization"] == self.server.allowed

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

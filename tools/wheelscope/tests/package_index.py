"""A package index on loopback that serves ranges and can be told to misbehave."""

import hashlib
import json
import re
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import sample_wheels
from packaging.utils import canonicalize_name


class Handler(BaseHTTPRequestHandler):
    """Answers with the index's pages and files, or with the fault that is set for the path."""

    protocol_version = "HTTP/1.1"
    index: "Index"

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        path, header = self.path, self.headers.get("Range", "")
        self.index.asked.append((path, header))
        if fault := self.index.faults.get(path):
            fault(self)
            return
        if path in self.index.files:
            self.send_file(self.index.files[path])
        elif path in self.index.pages:
            kind, body = self.index.pages[path]
            self.send_whole(body, {"Content-Type": kind})
        else:
            self.send_whole(b"no such page", status=404)

    def send_whole(
        self, body: bytes, headers: dict[str, str] | None = None, status: int = 200
    ) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def wanted(self, size: int) -> tuple[int, int] | None:
        """Returns the requested range: its start and end."""
        match = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        if not match:
            return None
        first, last = match.groups()
        if not first:
            return max(0, size - int(last)), size
        return int(first), min(size, int(last) + 1)

    def send_file(self, body: bytes, etag: str | None = None) -> None:
        tag = etag or hashlib.sha256(body).hexdigest()
        if not (found := self.wanted(len(body))):
            self.send_whole(body, {"ETag": f'"{tag}"'})
            return
        start, end = found
        self.send_part(body[start:end], f"bytes {start}-{end - 1}/{len(body)}", tag)

    def send_part(self, body: bytes, content_range: str, etag: str) -> None:
        headers = {"Content-Range": content_range, "ETag": f'"{etag}"'}
        self.send_whole(body, headers, status=206)


Fault = Callable[[Handler], None]


@dataclass
class Index:
    url: str = ""
    pages: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    listed: dict[str, list[dict[str, Any]]] = field(default_factory=dict)  # by project
    files: dict[str, bytes] = field(default_factory=dict)
    faults: dict[str, Fault] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)  # paths with their ranges

    @property
    def simple(self) -> str:
        return self.url + "/simple/"

    def address(self, name: str) -> str:
        return f"{self.url}/files/{name}"

    def add(self, name: str, body: bytes, **facts: Any) -> dict[str, Any]:
        """Adds a file to its project's page, or replaces it there; returns its entry."""
        self.files[f"/files/{name}"] = body
        entry = {
            "filename": name,
            "url": f"../../files/{name}",
            "hashes": {"sha256": hashlib.sha256(body).hexdigest()},
            "size": len(body),
            **facts,
        }
        project = canonicalize_name(name.partition("-")[0])
        others = [one for one in self.listed.get(project, []) if one["filename"] != name]
        self.page(project, [*others, entry])
        return entry

    def offer(
        self, name: str, members: dict[str, bytes], metadata: str = "", **facts: Any
    ) -> dict[str, Any]:
        """Adds a wheel that is made of these members."""
        return self.add(name, sample_wheels.wheel(name, members, metadata), **facts)

    def page(self, project: str, entries: list[dict[str, Any]]) -> None:
        self.listed[project] = entries
        body = json.dumps({"meta": {"api-version": "1.1"}, "name": project, "files": entries})
        self.pages[f"/simple/{project}/"] = ("application/vnd.pypi.simple.v1+json", body.encode())


@contextmanager
def serve(tls: ssl.SSLContext | None = None) -> Iterator[Index]:
    index = Index()
    handler = type("Handler", (Handler,), {"index": index})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    if tls:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    index.url = f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield index
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


# --- Faults --------------------------------------------------------------------------------------


def status(code: int, **headers: str) -> Fault:
    return lambda handler: handler.send_whole(b"so it is", headers, status=code)


def no_ranges(handler: Handler) -> None:
    handler.send_whole(handler.index.files[handler.path])


def cut_off(handler: Handler) -> None:
    """Promises everything, sends half, and hangs up."""
    body = handler.index.files[handler.path]
    start, end = handler.wanted(len(body)) or (0, len(body))
    handler.send_response(206 if handler.headers.get("Range") else 200)
    handler.send_header("Content-Length", str(end - start))
    handler.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(body)}")
    handler.end_headers()
    handler.wfile.write(body[start : (start + end) // 2])
    handler.close_connection = True


def changing(handler: Handler) -> None:
    """Serves another file of the same size each time."""
    handler.send_file(handler.index.files[handler.path], etag=str(len(handler.index.asked)))


def other_range(handler: Handler) -> None:
    body = handler.index.files[handler.path]
    handler.send_part(body[:100], f"bytes 0-99/{len(body)}", "x")


def other_bytes(handler: Handler) -> None:
    """Sends the header of the requested range with other bytes."""
    body = handler.index.files[handler.path]
    start, end = handler.wanted(len(body)) or (0, len(body))
    handler.send_part(b"\xa5" * (end - start), f"bytes {start}-{end - 1}/{len(body)}", "x")


def endless(handler: Handler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Type", "application/vnd.pypi.simple.v1+json")
    handler.end_headers()
    handler.close_connection = True
    try:
        while True:
            handler.wfile.write(b" " * (1 << 20))
    except OSError:
        pass  # the client has had enough


def silent(handler: Handler) -> None:
    time.sleep(30)
    handler.close_connection = True


def fails_at_first(handler: Handler) -> None:
    """Answers that it is overloaded once, then normally."""
    if sum(path == handler.path for path, _ in handler.index.asked) == 1:
        handler.send_whole(b"", status=503)
    else:
        handler.send_file(handler.index.files[handler.path])


def password(word: str) -> Fault:
    def check(handler: Handler) -> None:
        if handler.headers.get("Authorization") == word:
            kind, body = handler.index.pages[handler.path]
            handler.send_whole(body, {"Content-Type": kind})
        else:
            handler.send_whole(b"", {"WWW-Authenticate": 'Basic realm="index"'}, status=401)

    return check

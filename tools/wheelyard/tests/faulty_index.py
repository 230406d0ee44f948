"""A proxy in front of a real index, with the faults that real networks and caches have."""

import contextlib
import itertools
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from urllib.parse import urlsplit

NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


@contextmanager
def faulty_proxy(
    upstream: str,
    drop_every: int | None = None,
    cut_after: int | None = None,
    serve_after: float | None = None,
) -> Iterator[str]:
    """Hands connections on to `upstream`; drops each third one, say, or cuts off what sends more bytes than that, or
    lists no file for so many seconds after the first upload."""
    parts, count = urlsplit(upstream), itertools.count(1)
    listener = socket.create_server(("127.0.0.1", 0))
    uploads: list[float] = []

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

    def is_held_back(client: socket.socket) -> bool:
        start = client.recv(16, socket.MSG_PEEK)
        if start.startswith(b"POST"):
            uploads.append(time.monotonic())
        is_listing = start.startswith(b"GET") and bool(uploads)
        return is_listing and time.monotonic() - uploads[0] < (serve_after or 0)

    def connected(client: socket.socket) -> None:
        with client:
            if serve_after is not None and is_held_back(client):
                client.recv(65536)
                client.sendall(NOT_FOUND)
                return
            with socket.create_connection((parts.hostname, parts.port)) as server:
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

"""A proxy in front of a real index, with the faults that real networks have."""

import contextlib
import itertools
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from urllib.parse import urlsplit


@contextmanager
def faulty_proxy(
    upstream: str, drop_every: int | None = None, cut_after: int | None = None
) -> Iterator[str]:
    """Hands connections on to `upstream`; drops each third one, say, or cuts off what sends more bytes than that."""
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

"""Connects a release to a Dask scheduler: finds workers, sends jobs and files, receives files."""

import json
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import dask
import distributed
from distributed.client import ClosedClientError

from wheelyard.problem import Problem
from wheelyard.run.cluster import keys, worker
from wheelyard.run.cluster.offers import Member, Resources
from wheelyard.run.cluster.store import CHUNK

CONNECT_SECONDS = 30
BACK_SECONDS = 120  # how long a lost scheduler may take to come back
FRESH_SECONDS = 1.0  # the greatest age of the list of workers
AWAY = (OSError, RuntimeError, ClosedClientError)  # raised while the scheduler cannot be reached
LARGEST = 16 << 30  # the most bytes that a worker may send as one file

Message = Mapping[str, Any]


class Lost(Exception):
    """A worker that cannot be reached any more, or that sent something wrong."""


class SchedulerLost(Exception):
    """A scheduler that went away, with everything that it knew."""


class Errand:
    """A job under way in the cluster. Its messages come in the order in which they were sent."""

    def __init__(self, key: str) -> None:
        self.key, self.inbox = key, queue.SimpleQueue[Message]()
        self.future: Any = None
        self.answer: str | None = None  # the outcome that the worker sent, as JSON

    def outcome(self) -> dict[str, Any]:
        """Returns what the worker said about the job, once it is over."""
        if self.future.status == "finished":
            try:
                return checked(json.loads(self.answer or ""))
            except ValueError:
                raise Lost("did not say how the job ended") from None
        if self.future.status == "error":
            error = self.future.exception()
            if isinstance(error, distributed.KilledWorker):
                raise Lost(f"died while running it, as {worker.ALLOWED_FAILURES} others before")
            raise Problem(f"the worker failed: {error!r}")
        raise SchedulerLost


def checked(told: Any) -> dict[str, Any]:
    """Returns a worker's answer after checking its shape, as it comes from another machine."""
    kinds = {"kind": str, "address": str, "machine": str, "log": list}
    if isinstance(told, dict) and told.get("kind") == "passed":
        kinds |= {"verdict": str, "outputs": dict}
    if not isinstance(told, dict) or not all(isinstance(told.get(k), t) for k, t in kinds.items()):
        raise Lost(f"sent an invalid answer: {json.dumps(told)[:200]}")
    for file in (told["log"], *told.get("outputs", {}).values()):
        if not isinstance(file, list) or [type(part) for part in file] != [str, int]:
            raise Lost(f"sent an invalid answer: {json.dumps(file)[:200]}")
    return told


class _Client(distributed.Client):
    async def _ensure_connected(self, timeout: float | None = None) -> None:
        """Lets Dask try again where a connection ends while TLS begins: tornado's ValueError would end its attempts."""
        try:
            await super()._ensure_connected(timeout=timeout)  # type: ignore[no-untyped-call]
        except ValueError as error:
            raise OSError(str(error)) from error


class Link:
    def __init__(self, address: str, client: Any) -> None:
        self.address, self._client = address, client
        self._topic = f"wheelyard-{client.id}"
        self._errands: dict[str, Errand] = {}
        self._members: list[Member] = []
        self._looked = float("-inf")
        self._turn = threading.Lock()
        self._subscribe()

    @property
    def dashboard(self) -> str:
        return str(self._client.dashboard_link)

    def members(self) -> list[Member]:
        with self._turn:
            if time.monotonic() - self._looked > FRESH_SECONDS:
                try:
                    known = self._client.sync(self._client.scheduler.identity, n_workers=-1)
                except AWAY:
                    return []  # the scheduler is away; jobs will notice
                self._members = [
                    Member(address, str(w["name"]), w["nthreads"], w["resources"])
                    for address, w in known["workers"].items()
                ]
                self._looked = time.monotonic()
            return self._members

    def able(self, wanted: Resources) -> list[Member]:
        """Returns the workers that offer everything in `wanted`."""
        return [member for member in self.members() if member.can(wanted)]

    def send(
        self, key: str, order: dict[str, Any], wants: Resources, among: list[str], priority: int
    ) -> Errand:
        """Gives a job to the scheduler. If `among` names workers, no other may get it: Dask can also merely prefer
        workers, but once they are gone it takes any other, whatever that one offers."""
        errand = Errand(key)
        self._errands[key] = errand
        text = json.dumps({**order, "topic": self._topic})
        try:
            errand.future = self._client.submit(
                worker.perform, text, key=key, resources=wants, pure=False, priority=priority,
                workers=among or None,
            )  # fmt: skip
        except ClosedClientError:
            del self._errands[key]
            raise SchedulerLost from None
        errand.future.add_done_callback(lambda _: errand.inbox.put({"kind": "over"}))
        return errand

    def forget(self, errand: Errand) -> None:
        self._errands.pop(errand.key, None)
        errand.future.release()

    def wait_until_back(self) -> None:
        """Waits for a lost scheduler to come back."""
        began = time.monotonic()
        while self._client.status != "running":
            if self._client.status == "closed" or time.monotonic() - began > BACK_SECONDS:
                raise Problem(
                    f"the scheduler at {self.address} went away; start it again, then run the same command: "
                    "it continues from here"
                )
            time.sleep(0.5)
        self._subscribe()  # a new scheduler does not know us

    def supply(self, address: str, files: Iterable[tuple[str, Path]]) -> None:
        """Sends files to a worker, small ones together."""
        batch: list[tuple[str, int, bytes, bool]] = []
        for piece in _pieces(files):
            batch.append(piece)
            if sum(len(content) for _, _, content, _ in batch) >= CHUNK:
                self._call(address, worker.receive, batch)
                batch = []
        if batch:
            self._call(address, worker.receive, batch)

    def fetch(self, told: Mapping[str, Any], file: list[Any], target: Path) -> None:
        """Copies a file from a worker, and checks its size and digest here."""
        digest, size = file
        target.parent.mkdir(parents=True, exist_ok=True)
        seen, offset = sha256(), 0
        with target.open("wb") as stream:
            while offset < min(size, LARGEST):
                content = self._call(told["address"], worker.read, digest, offset)
                if not isinstance(content, bytes) or not content:
                    break
                seen.update(content)
                stream.write(content)
                offset += len(content)
        if offset != size or seen.hexdigest() != digest:
            target.unlink()
            raise Lost(f"sent {target.name} with other bytes than it announced")

    def cancel_all(self) -> None:
        for errand in list(self._errands.values()):
            errand.inbox.put({"kind": "stopped"})
        futures = [errand.future for errand in self._errands.values()]
        try:
            self._client.cancel(futures, force=True)
        except AWAY:
            return  # without a scheduler no job continues

    def _call(self, address: str, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return self._client.run(function, *arguments, workers=[address])[address]
        except Exception as error:  # anything that the other side raised
            raise Lost(f"does not answer ({type(error).__name__}: {error})") from None

    def leave(self) -> None:
        """Unsubscribes from the scheduler, which complains if it has news for someone who has left."""
        if self._client.status == "running":
            self._client.unsubscribe_topic(self._topic)

    def _subscribe(self) -> None:
        self._client.subscribe_topic(self._topic, self._hear)

    def _hear(self, event: tuple[float, Message]) -> None:
        _, message = event
        errand = self._errands.get(str(message.get("job")))
        if errand and message.get("kind") == "outcome":
            errand.answer = str(message.get("text"))
        elif errand:
            errand.inbox.put(message)


def _pieces(files: Iterable[tuple[str, Path]]) -> Iterator[tuple[str, int, bytes, bool]]:
    for digest, file in files:
        size = file.stat().st_size
        with file.open("rb") as stream:
            for offset in range(0, max(size, 1), CHUNK):
                yield digest, offset, stream.read(CHUNK), offset + CHUNK >= size


@contextmanager
def joined(given: str, folder: Path) -> Iterator[Link]:
    """Yields a link to the scheduler at an address."""
    address = keys.address(given)
    security = keys.security(address, folder)
    with dask.config.set(
        {**worker.SETTINGS, "distributed.comm.timeouts.connect": f"{CONNECT_SECONDS}s"}
    ):
        try:
            socket.create_connection(keys.host_and_port(address), CONNECT_SECONDS).close()
            client: Any = _Client(  # type: ignore[no-untyped-call]
                address, security=security, timeout=BACK_SECONDS, set_as_default=False
            )
        except (OSError, TimeoutError) as error:
            raise Problem(
                f"no scheduler answers at {address} ({error}); start one there: `wheelyard scheduler`"
            ) from None
        try:
            link = Link(address, client)
            try:
                yield link
            finally:
                link.leave()
        finally:
            close(client)


def close(client: Any) -> None:
    """Closes a client. If its last attempt to connect failed in an odd way, such as in a handshake with a scheduler
    that was killed, close() raises that error, and would hide the one that ended the release."""
    try:
        client.close()
    except Exception:
        client.status = "closed"  # else its destructor tries again

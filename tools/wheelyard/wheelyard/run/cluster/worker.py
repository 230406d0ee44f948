"""Runs `wheelyard worker` and `wheelyard scheduler`: the processes of a cluster, each with Dask's own inside.

A worker that loses its scheduler ends its jobs, as the scheduler gives them to others, and looks for it again.
"""

import asyncio
import json
import logging
import signal
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask.utils
import distributed
from distributed.diagnostics.plugin import WorkerPlugin

from wheelyard.core import engine, guard, shell
from wheelyard.core.disk import temporary_files_in
from wheelyard.core.lock import only_one
from wheelyard.core.progress import Display
from wheelyard.problem import Problem
from wheelyard.run import local
from wheelyard.run.cluster import keys, offers
from wheelyard.run.cluster.service import Service

LOOK_AGAIN_SECONDS = 3
PATIENCE_SECONDS = 600  # how long a worker waits without a scheduler
# A job on which more workers than this have died is not given to another.
ALLOWED_FAILURES = 3
# Timeouts let a silent machine count as alive for long: a minute without a network must not cost hours of building.
SETTINGS = {
    "distributed.scheduler.allowed-failures": ALLOWED_FAILURES,
    "distributed.comm.timeouts.connect": "30s",
    "distributed.comm.timeouts.tcp": "90s",
    # The dashboard has no password, so it is only for the scheduler's own machine, or a tunnel to it.
    "distributed.dashboard.link": "http://localhost:{port}/status",
    "distributed.worker.profile.enabled": False,
    # By default Dask checks its own state fifty times a second, for tasks of milliseconds; jobs here take minutes.
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "10s",
    "distributed.client.scheduler-info-interval": "1m",
    "distributed.scheduler.active-memory-manager.start": False,
}


@dataclass(frozen=True)
class Settings:
    """The choices that a person has for a worker."""

    address: str
    keys: Path
    folder: Path
    name: str
    slots: int
    limit: int  # bytes of each cache
    network: bool = True
    memory: str | None = None  # such as 64GB; None: the machine's


def perform(order: str) -> None:
    """Runs one job as a Dask task. Its outcome is a message like the others, as the task's result would cost a round
    trip."""
    worker = distributed.get_worker()
    service: Service = worker.wheelyard  # type: ignore[attr-defined]
    given = json.loads(order)
    about = {"job": worker.get_current_task(), "address": worker.address, "machine": worker.name}

    def tell(what: dict[str, Any]) -> None:
        worker.log_event(given["topic"], {**what, **about})

    tell({"kind": "outcome", "text": json.dumps({**service.perform(given, tell), **about})})


def receive(pieces: list[tuple[str, int, bytes, bool]], dask_worker: Any) -> None:
    """Stores files that a job asked for, in pieces."""
    for piece in pieces:
        dask_worker.wheelyard.store.receive(*piece)


def read(digest: str, offset: int, dask_worker: Any) -> bytes:
    """Returns a piece of a file that a job made."""
    content: bytes = dask_worker.wheelyard.store.read(digest, offset)
    return content


class Programs(WorkerPlugin):
    """A plugin that ends the programs of jobs whose result nobody wants any more."""

    def setup(self, worker: Any) -> None:
        self.worker = worker

    def transition(self, key: Any, start: str, finish: str, **_: Any) -> None:
        if start == "executing" and finish in ("cancelled", "released", "forgotten"):
            threads = {task: thread for thread, task in self.worker.active_threads.items()}
            if key in threads:
                shell.stop_all(threads[key])


async def member(settings: Settings, service: Service, resources: offers.Resources) -> Any:
    """Starts a Dask worker in this process, and joins it to the scheduler."""
    worker: Any = distributed.Worker(
        settings.address, nthreads=settings.slots, name=settings.name, resources=resources,
        security=keys.security(settings.address, settings.keys), memory_limit=0,
        host="127.0.0.1" if keys.is_loopback(settings.address) else None,
        local_directory=str(settings.folder / "dask"), plugins=(Programs(),), dashboard=False,
        death_timeout=PATIENCE_SECONDS,
    )  # fmt: skip
    worker.wheelyard = service
    return await worker


def work(settings: Settings, module: local.StepModule, display: Display) -> None:
    """Serves until someone ends it, or there has been no scheduler for long."""
    _quiet()
    keys.security(settings.address, settings.keys)  # so that mistakes in them are reported first
    with only_worker(settings.folder):
        guard.run_after_a_kill(engine.after_a_kill())
        here = local.Here(settings.folder, display)
        service = Service(here, module, settings.limit)
        resources = offers.offered(settings.slots, network=settings.network)
        if settings.memory:
            resources[offers.MEMORY] = dask.utils.parse_bytes(settings.memory) >> 30
        here.say(
            f"{settings.name} offers {offers.shown(resources)}; {settings.slots} jobs at a time"
        )
        try:
            with temporary_files_in(settings.folder / "work"), dask.config.set(SETTINGS):
                asyncio.run(_serve(settings, service, resources))
        finally:
            shell.stop_all()
            here.close()


async def _serve(settings: Settings, service: Service, resources: offers.Resources) -> None:
    ended = asyncio.Event()
    hung_up = [signal.SIGHUP] * (signal.getsignal(signal.SIGHUP) != signal.SIG_IGN)  # not for nohup
    for sign in (signal.SIGINT, signal.SIGTERM, *hung_up):
        asyncio.get_running_loop().add_signal_handler(sign, ended.set)
    seen = time.monotonic()
    while not ended.is_set():
        try:
            worker = await member(settings, service, resources)
        except (OSError, ValueError, RuntimeError, TimeoutError) as error:
            if time.monotonic() - seen > PATIENCE_SECONDS:
                raise Problem(
                    f"there has been no scheduler at {settings.address} for {PATIENCE_SECONDS} seconds ({error}); "
                    "`wheelyard scheduler` starts one"
                ) from None
            with suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), LOOK_AGAIN_SECONDS)
            continue
        service.here.say(f"joined {settings.address}")
        finished = asyncio.ensure_future(worker.finished())
        await asyncio.wait(
            [finished, asyncio.ensure_future(ended.wait())], return_when=asyncio.FIRST_COMPLETED
        )
        shell.stopping.set()  # the scheduler gives jobs that still run here to others
        shell.stop_all()
        await worker.close(timeout=30)
        shell.stopping.clear()
        seen = time.monotonic()
        if not ended.is_set():
            service.here.say(f"{settings.address} is gone; looking for it")


def only_worker(folder: Path) -> AbstractContextManager[None]:
    """Locks a folder, as only one worker at a time may use it."""
    return only_one(
        folder, f"another worker uses {folder}; give this one a folder of its own: --folder FOLDER"
    )


def _quiet() -> None:
    """Silences Dask's messages about every connection; warnings remain."""
    logging.getLogger("distributed").setLevel(logging.WARNING)


def schedule(host: str, port: int, folder: Path, say: Callable[[str], None]) -> None:
    """Runs a Dask scheduler until someone ends it. A scheduler for this machine alone makes its keys if there are
    none."""
    _quiet()
    if not (folder / keys.MEMBER).exists() and keys.is_loopback(f"tls://{host}:{port}"):
        keys.make(folder)
        say(f"made this cluster's keys in {folder}")
    security = keys.security(f"tls://{host}:{port}", folder)

    async def serve() -> None:
        ended = asyncio.Event()
        for sign in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(sign, ended.set)
        try:
            scheduler = await distributed.Scheduler(
                host=host, port=port, protocol="tls://", security=security,
                dashboard_address="127.0.0.1:8787",
            )  # fmt: skip
        except OSError as error:
            raise Problem(f"no scheduler at {host}:{port}: {error}") from None
        say(f"the scheduler: {scheduler.address}")
        await ended.wait()
        await scheduler.close()

    with dask.config.set(SETTINGS):
        asyncio.run(serve())

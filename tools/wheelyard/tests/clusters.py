"""Runs real clusters on this machine: a scheduler and workers as processes, each worker in a folder of its own. Their
jobs belong to a toy step that runs the Python in their input `do`."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from repository import TOOL, wait_until
from wheelyard.core.job import Graph, Job
from wheelyard.core.progress import Display
from wheelyard.core.record import Facts, Record
from wheelyard.core.workspace import Workspace
from wheelyard.run import local
from wheelyard.run.runner import Runner

WORKER = """
import sys
from pathlib import Path
import clusters
from wheelyard.core.progress import Display
from wheelyard.run.cluster import offers, service, store, worker
{patch}
settings = worker.Settings(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4], 2, 10**9)
worker.work(settings, clusters.toy_step, Display())
"""


def toy_step(name: str) -> ModuleType:
    def run(job: Job, workspace: Workspace) -> str:
        facts: Facts = {}
        exec(workspace.inputs.get("do", ""), {"job": job, "workspace": workspace, "facts": facts})
        return json.dumps(facts)

    step = ModuleType(name)
    step.run = run  # type: ignore[attr-defined]
    return step


def facts_of(record: Record, name: str) -> Facts:
    """Returns what a toy job has reported."""
    return dict(json.loads(record.jobs[name]["facts"]["verdict"]))


class Machines:
    """A scheduler and its workers."""

    def __init__(self, folder: Path, host: str = "127.0.0.1") -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.folder, self.keys = folder, folder / "keys"
        self.host, self.address = host, f"tls://{host}:{self.port}"
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def scheduler(self) -> None:
        words = ["-m", "wheelyard", "scheduler", f"--port={self.port}", f"--keys={self.keys}"]
        self._start("scheduler", [*words, f"--host={self.host}"])
        self.wait_for("scheduler", "the scheduler:")

    def worker(
        self, name: str, patch: str = "", folder: Path | None = None, inside: Sequence[str] = ()
    ) -> Path:
        """Starts a worker that runs toy jobs, and returns its folder. `patch` is Python that changes the worker first;
        `inside` is a command that starts it."""
        place = folder or self.folder / name
        code = WORKER.format(patch=patch)
        words = ["-c", code, self.address, str(self.keys), str(place), name]
        self._start(name, words, inside)
        self.wait_for(name, "joined")
        return place

    def real_worker(self, name: str, inside: Sequence[str] = ()) -> None:
        """Starts a worker that runs the real steps, one job at a time."""
        words = ["-m", "wheelyard", "worker", self.address, f"--name={name}", "--jobs=1"]
        words += [f"--keys={self.keys}", f"--folder={self.folder / name}"]
        words += ["--no-network"] if inside else []  # it reaches the scheduler, and nothing else
        self._start(name, words, inside)
        self.wait_for(name, "joined")

    def kill(self, name: str) -> None:
        self.processes[name].send_signal(signal.SIGKILL)
        self.processes[name].wait()

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text()

    def _start(self, name: str, words: list[str], inside: Sequence[str] = ()) -> None:
        paths = [str(TOOL), str(TOOL / "tests")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONUNBUFFERED": "1"}
        with (self.folder / f"{name}.log").open("wb") as log:
            self.processes[name] = subprocess.Popen(
                [*inside, sys.executable, *words], env=environment, stdout=log, stderr=log
            )

    def wait_for(self, name: str, text: str, times: int = 1) -> None:
        def said() -> bool:
            assert self.processes[name].poll() is None, self.log(name)
            return self.log(name).count(text) >= times

        wait_until(said, 180)  # a busy machine takes a minute to start Dask

    def close(self) -> None:
        for process in self.processes.values():
            if process.poll() is None:
                process.terminate()
        for process in self.processes.values():
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextmanager
def machines(folder: Path, host: str = "127.0.0.1") -> Iterator[Machines]:
    started = Machines(folder, host)
    try:
        started.scheduler()
        yield started
    finally:
        started.close()


def run(there: Machines, record: Record, *jobs: Job, project: Path | None = None) -> None:
    """Runs toy jobs on a cluster."""
    from wheelyard.run.cluster import link, place

    here = local.Here(record.folder, Display())
    with link.joined(there.address, there.keys) as joined:
        toys = local.Local(project or record.folder, toy_step, here)
        whole = place.Cluster(joined, toys)
        Runner(Graph.of(jobs), record, here.display, whole).run(list(jobs), force=False)

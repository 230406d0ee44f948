"""Times the graph of a release with a wheel for each torch on clusters of 1 to 64 workers, into docs/cluster.json.

The scheduler, the workers, the links and the runner are the real ones; the jobs only sleep, a hundredth of times that
were measured, and less where few workers would sleep for an hour. Each worker has one slot. The bound is what no
schedule can beat: the longest chain of jobs, or all work shared out evenly. `make bench-cluster`
"""

import argparse
import asyncio
import json
import os
import platform
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
from wheelyard import steps
from wheelyard.core.job import Graph, Job, Made, Needs, Passed
from wheelyard.core.progress import Display
from wheelyard.core.record import Record
from wheelyard.plan import plan as planning
from wheelyard.plan.plan import Options
from wheelyard.run import local
from wheelyard.run.cluster import link, offers, place, worker
from wheelyard.run.cluster.service import Service
from wheelyard.run.runner import Runner
from wheelyard.run.waiting import remaining

TOOL = Path(__file__).resolve().parents[1]
TARGET = TOOL / "docs"
# Jobs sleep for the measured times divided by this, by the number of workers, and by SHARE with any other number.
SHARES = {1: 1000, 4: 200}
SHARE = 100
# Seconds. A build is the usual CUDAExtension's for every GPU target; the others are of the repository's own release on
# 2 x86_64 cores: the median of each step, with verify's tests and links counted apart. The sdist's is the median of
# three releases (1.3, 1.9 and 4.9 s); the GPU's is that of smoke.
SECONDS = {
    "build": 1078.4, "sdist": 1.9, "repair": 0.6, "gate": 1.0, "test": 227.4, "link": 12.0,
    "smoke": 8.2, "publish": 12.1, "install": 15.8, "gpu": 8.2,
}  # fmt: skip
IN_A_PROCESS = 16  # workers that share a process


def seconds(job: Job, share: int) -> float:
    kind = "sdist" if job.name == "build/sdist" else job.step
    if job.step == "verify":
        kind = "link" if job.unit.endswith("-link") else "test"
    return SECONDS[kind] / share


def jobs() -> list[Job]:
    """The jobs of strategy `each` on machines of both architectures."""
    options = Options(
        strategy="each", base="pypa", place="cluster", offered=("aarch64", "x86_64", "gpu")
    )
    return list(steps.planned(planning.load(options)).jobs.values())


def asleep(job: Job, share: int) -> Job:
    """The same job with sleep in place of work."""
    references = {n: v for n, v in job.inputs.items() if isinstance(v, Made | Passed)}
    needs = Needs(secrets=job.needs.secrets)
    outputs = tuple(pattern.replace("*", job.unit) for pattern in job.outputs)
    return Job(job.step, job.unit, needs, {**references, "sleep": seconds(job, share)}, outputs)


def run(job: Job, workspace: Any) -> dict[str, Any]:
    time.sleep(workspace.inputs["sleep"])
    for path in job.outputs:
        file = workspace.out / path.removeprefix("?")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(job.name)
    return {}


STEP: Any = lambda _: SimpleNamespace(run=run)  # noqa: E731


def bound(found: list[Job], workers: int) -> float:
    """No schedule is shorter: jobs with secrets run on this machine, beside the workers."""
    took = {job.name: float(job.inputs["sleep"]) for job in found}
    path = max(remaining(found, took).values())
    away = sum(took[job.name] for job in found if not job.needs.secrets)
    return max(path, away / workers)


def serve(address: str, folder: Path, first: int, count: int) -> None:
    """Some workers in one process."""

    async def all_of_them() -> None:
        members, offered = [], offers.offered(1, network=True)
        for number in range(first, first + count):
            name, own = f"worker-{number:02}", folder / f"{number}"
            own.mkdir(parents=True)
            settings = worker.Settings(address, folder.parent, own, name, 1, 10**9)
            service = Service(own, STEP, 10**9, lambda _: None)
            members.append(await worker.member(settings, service, offered))
        await asyncio.gather(*(member.finished() for member in members))

    import dask

    with dask.config.set(worker.SETTINGS):
        asyncio.run(all_of_them())


@contextmanager
def cluster(folder: Path, workers: int) -> Iterator[tuple[str, psutil.Process]]:
    """The address of its scheduler, and the scheduler."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address = f"tls://127.0.0.1:{port}"
    words = [sys.executable, "-m", "wheelyard", "scheduler", f"--port={port}", f"--keys={folder}"]
    started = [subprocess.Popen(words, stdout=subprocess.DEVNULL, cwd=TOOL)]
    try:
        for first in range(0, workers, IN_A_PROCESS):
            count = min(IN_A_PROCESS, workers - first)
            words = [sys.executable, "-m", "maintenance.bench_cluster", "--serve", address]
            words += [str(folder / "workers"), str(first), str(count)]
            started.append(subprocess.Popen(words, cwd=TOOL))
        yield address, psutil.Process(started[0].pid)
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            process.wait()


def measure(planned: list[Job], workers: int) -> dict[str, float]:
    share = SHARES.get(workers, SHARE)
    found = [asleep(job, share) for job in planned]
    with tempfile.TemporaryDirectory() as name, cluster(Path(name), workers) as (address, there):
        house = Path(name) / "release"
        house.mkdir()
        for _ in range(600):
            try:
                with link.joined(address, Path(name)) as joined:
                    if len(joined.members()) < workers:
                        time.sleep(0.5)
                        continue
                    here = local.Here(house, Display())
                    here.display.console.quiet = True
                    whole = place.Cluster(joined, local.Local(house, STEP, here))
                    runner = Runner(Graph.of(found), Record(house), here.display, whole)
                    began, before = time.monotonic(), (processor(), processor(there))
                    runner.run(found, force=False)
                    took = time.monotonic() - began
                    own, scheduler = processor() - before[0], processor(there) - before[1]
                    break
            except Exception as error:
                if "no scheduler answers" not in str(error):
                    raise
                time.sleep(0.2)
    least = bound(found, workers)
    return {
        "workers": workers, "share": share, "seconds": round(took, 2), "bound": round(least, 2),
        "efficiency": round(least / took, 3),
        "processor_ms_of_a_job": {
            "release": round(own / len(found) * 1000, 1),
            "scheduler": round(scheduler / len(found) * 1000, 1),
        },
    }  # fmt: skip


def processor(process: psutil.Process | None = None) -> float:
    """The processor time that a process has used, in seconds; by default this process."""
    used = (process or psutil.Process()).cpu_times()
    return float(used.user + used.system)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 4, 16, 64])
    parser.add_argument("--serve", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        address, folder, first, count = arguments.serve
        serve(address, Path(folder), int(first), int(count))
        return
    found = jobs()
    counts = Counter(job.step for job in found)
    file = TARGET / "cluster.json"
    known = json.loads(file.read_text())["rows"] if file.exists() else []
    rows = {row["workers"]: row for row in known}
    for workers in arguments.workers:
        load = round(os.getloadavg()[0], 2)
        rows[workers] = measure(found, workers) | {"load_before": load}
        print(rows[workers], flush=True)
        save(rows, counts)


def save(rows: dict[float, dict[str, float]], counts: Counter[str]) -> None:
    result: dict[str, Any] = {
        "machine": {"cpu": platform.machine(), "cores": os.cpu_count()},
        "jobs": dict(counts), "seconds_of_a_job": SECONDS,
        "rows": [rows[workers] for workers in sorted(rows)],
    }  # fmt: skip
    file = TARGET / "cluster.json"
    known = json.loads(file.read_text()) if file.exists() else {}
    file.write_text(json.dumps(known | result) + "\n")


if __name__ == "__main__":
    main()

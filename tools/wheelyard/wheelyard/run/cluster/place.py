"""Runs jobs on a cluster: each goes to a worker that meets its needs; jobs that need secrets stay here.

A machine's fault (it died, its disk is full, it sent wrong bytes) sends a job elsewhere, a limited number of times. A
job that fails by its own fault would fail anywhere, and is not repeated.
"""

import queue
import secrets
import threading
import time
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from wheelyard.core.job import Job
from wheelyard.core.record import Facts, check_path
from wheelyard.problem import Problem
from wheelyard.run.cluster import offers
from wheelyard.run.cluster.link import Errand, Link, Lost, SchedulerLost
from wheelyard.run.cluster.offers import Member
from wheelyard.run.cluster.service import Orders
from wheelyard.run.local import Local
from wheelyard.run.runner import Ran
from wheelyard.steps import ORDER

AHEAD = 1  # jobs that wait at a worker; Dask moves them to another that is free earlier
ATTEMPTS = 3
LOOK_SECONDS = 5
ALONE_SECONDS = 120  # how long a job waits for a worker if none could take it
HERE = "here"


class Gone(Exception):
    """A machine that went away with its job, which another starts again."""


class Elsewhere(Exception):
    """A fault of a machine, so that the job may succeed on another."""

    def __init__(self, machine: str, why: str) -> None:
        super().__init__(f"{machine} {why}")
        self.machine = machine


@dataclass
class Cluster:
    """The workers of a cluster, and this machine for jobs that may not leave it."""

    link: Link
    local: Local
    at: dict[str, str] = field(default_factory=dict)  # the machine of each running job
    step_by_step: ClassVar[bool] = False
    _stopped: threading.Event = field(default_factory=threading.Event)
    _turn: threading.Lock = field(default_factory=threading.Lock)
    _orders: Orders = field(init=False)
    _has: dict[str, set[str]] = field(default_factory=dict)  # images and files of each worker

    def __post_init__(self) -> None:
        self._orders = Orders(self.local.project, self.local.here.folder)

    # --- Room ------------------------------------------------------------------------------------

    def kind(self, job: Job) -> Hashable:
        """Returns the job's step and needs, so that each step has room of its own: builds wait at a worker beside jobs
        that use finished builds."""
        return HERE if job.needs.secrets else (job.step, tuple(offers.wanted(job).items()))

    def room(self, kind: Hashable) -> int:
        """Returns how many jobs may run or wait at a worker, so that no worker is ever idle."""
        if kind == HERE:
            return self.local.room(kind)
        assert isinstance(kind, tuple)
        wants = dict(kind[1])
        return max(1, sum(member.room(wants) + AHEAD for member in self.link.able(wants)))

    def lacks(self, job: Job) -> str | None:
        if job.needs.secrets:
            return self.local.lacks(job)
        return offers.lacking(job, self.link.members(), self.link.address)

    def stop(self) -> None:
        self._stopped.set()
        self.local.stop()
        self.link.cancel_all()

    def close(self) -> None:
        self.local.close()

    # --- A job -----------------------------------------------------------------------------------

    def run(self, job: Job, inputs: Facts, folder: Path, log: Path) -> Ran:
        if job.needs.secrets:
            self.at[job.name] = HERE
            try:
                return self.local.run(job, inputs, folder, log)
            finally:
                del self.at[job.name]
        order, files = self._orders.of(job, inputs)
        avoided: dict[str, str] = {}  # machines, and what went wrong on each
        for _ in range(ATTEMPTS):
            try:
                return self._attempt(job, order, files, folder, log, set(avoided))
            except Elsewhere as fault:
                avoided[fault.machine] = str(fault)
                self.local.here.say(f"{job.name}: {fault}; trying another machine")
            except Gone as gone:
                self.local.here.say(
                    f"{job.name}: {gone} went away; another machine starts it again"
                )
            except SchedulerLost:
                if self._stopped.is_set():
                    raise Problem("it was stopped") from None
                self.local.here.say(f"{job.name}: the scheduler went away; waiting for it")
                self.link.wait_until_back()
            finally:
                self.at.pop(job.name, None)
        why = "; ".join(avoided.values()) or "its machine, or the scheduler, went away each time"
        raise Problem(
            f"no machine finished it: {why}. When that is fixed, run the same command: "
            "it continues from here"
        )

    def _attempt(
        self,
        job: Job,
        order: Facts,
        files: dict[str, Path],
        folder: Path,
        log: Path,
        avoided: set[str],
    ) -> Ran:
        among = self._others(job, avoided) if avoided else self._prepared(job, order)
        key = f"{job.name}-{secrets.token_hex(4)}"
        later_first = ORDER.index(job.step)
        errand = self.link.send(key, order, offers.wanted(job), among, later_first)
        try:
            machine, began = self._accompany(job, errand, files, among, moves=not avoided)
            try:
                outcome = errand.outcome()
                machine = str(outcome.get("machine", machine))
                if outcome["log"][0]:
                    self.link.fetch(outcome, outcome["log"], log)
                if outcome.get("kind") == "fault":
                    raise Elsewhere(machine, f"cannot do it: {outcome['error']}")
                if outcome.get("kind") != "passed":
                    text = str(outcome.get("error", "it failed")).replace(
                        str(outcome.get("log_path")), str(log)
                    )
                    raise Problem(f"on {machine}: {text}")
                for path, file in outcome["outputs"].items():
                    check_path(job, path)
                    self.link.fetch(outcome, file, folder / "out" / path)
                self._note(job, outcome)
            except Lost as lost:
                raise Elsewhere(machine, str(lost)) from None
            return Ran(str(outcome["verdict"]), machine, began)
        finally:
            self.link.forget(errand)

    def _accompany(
        self, job: Job, errand: Errand, files: dict[str, Path], among: list[str], *, moves: bool
    ) -> tuple[str, float]:
        """Waits for the end of a job, and sends files that its worker lacks. Returns where it ran, and since when. If
        `moves`, the job may go to another machine when those of `among` have gone."""
        machine, began = "", time.time()
        alone_since: float | None = None
        while True:
            try:
                message = errand.inbox.get(timeout=LOOK_SECONDS)
            except queue.Empty:
                if among and moves and self.link.members() and not self._able(job, among):
                    raise Gone(machine or "its machine") from None
                if self._able(job, among):
                    alone_since = None
                    continue
                alone_since = alone_since or time.monotonic()
                if time.monotonic() - alone_since > ALONE_SECONDS:
                    raise Problem(self._no_worker(job, [machine] * bool(machine))) from None
                continue
            match message["kind"]:
                case "started":
                    if machine:
                        self.local.here.say(
                            f"{job.name}: {machine} went away; {message['machine']} starts it again"
                        )
                    else:
                        self.local.here.say(f"{job.name} starts on {message['machine']}")
                    machine, began = str(message["machine"]), time.time()
                    self.at[job.name] = machine
                case "wants":
                    known = [(d, files[d]) for d in message["files"] if d in files]
                    try:
                        self.link.supply(str(message["address"]), known)
                    except Lost as lost:  # if it is dead, Dask gives the job to another
                        self.local.here.say(f"{job.name}: {message['machine']} {lost}")
                case "over":
                    return machine or "a worker", began
                case "stopped":
                    raise Problem("it was stopped")

    def _prepared(self, job: Job, order: Facts) -> list[str]:
        """Returns the worker with room that has most of what a job uses, above all its image: it fetches the least."""
        able, uses = self._able(job), {_image(job), *order["made"].values()}
        with self._turn:
            busy = Counter(self.at.values())
            free = [member for member in able if busy[member.name] < member.slots]
            best = max(free, key=lambda member: self._worth(member, job, uses), default=None)
            if best is None or not any(self._worth(best, job, uses)):
                return []
            self.at[job.name] = best.name
            return [best.address]

    def _worth(self, member: Member, job: Job, uses: set[str]) -> tuple[bool, int]:
        has = self._has.get(member.address, set())
        return _image(job) in has, len(uses & has)

    def _note(self, job: Job, outcome: Facts) -> None:
        """Remembers which files and image a worker has now."""
        has = self._has.setdefault(outcome["address"], set())
        has |= {_image(job), *(digest for digest, _ in outcome["outputs"].values())} - {""}

    def _others(self, job: Job, avoided: set[str]) -> list[str]:
        """Returns the workers that may still get a job. If all that could take it had a fault, waits a while for a new
        one."""
        began = time.monotonic()
        while True:
            able = [m.address for m in self._able(job) if m.name not in avoided]
            if able:
                return able
            if time.monotonic() - began > ALONE_SECONDS or self._stopped.wait(1):
                raise Problem(self._no_worker(job, sorted(avoided)))

    def _able(self, job: Job, among: Sequence[str] = ()) -> list[Member]:
        """Returns the workers that can do a job; only those in `among`, if there are any."""
        able = self.link.able(offers.wanted(job))
        return [m for m in able if not among or m.address in among]

    def _no_worker(self, job: Job, after: list[str]) -> str:
        what = offers.said(offers.wanted(job))
        beside = f" beside {', '.join(after)}" if after else ""
        return (
            f"no worker is left{beside} that offers {what or 'what it needs'}; add one, then run the same command: "
            f"it continues from here\n  wheelyard worker {self.link.address}"
        )


def _image(job: Job) -> str:
    """Returns the tag of the image that a job runs in; empty if it has none."""
    image: Any = job.inputs.get("image")
    return str(image["tag"]) if image else ""

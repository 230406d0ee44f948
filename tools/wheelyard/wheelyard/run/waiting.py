"""Queues the jobs that have not started: a job may start when its dependencies are done and there is room."""

from collections import Counter
from collections.abc import Hashable
from graphlib import TopologicalSorter
from typing import Protocol

from wheelyard.core.job import Job


class Room(Protocol):
    """The number of jobs that a place takes at the same time."""

    @property
    def step_by_step(self) -> bool:
        """Whether a step begins only after the one before it is over."""
        ...

    def kind(self, job: Job) -> Hashable:
        """Returns the kind of a job; jobs of one kind compete for the same room."""
        ...

    def room(self, kind: Hashable) -> int: ...


class Waiting:
    """The jobs that have not started. Once a job has failed, no later step starts, and no job that needs the failed
    one."""

    def __init__(self, jobs: list[Job], room: Room) -> None:
        self._room = room
        self._jobs = {job.name: job for job in jobs}
        self._kind = {job.name: room.kind(job) for job in jobs}
        self._order = TopologicalSorter({j.name: self._jobs.keys() & set(j.after) for j in jobs})
        self._order.prepare()
        steps = list(dict.fromkeys(job.step for job in jobs))
        self._number = {step: number for number, step in enumerate(steps)}
        self._left = Counter(job.step for job in jobs)
        self._last = len(steps)  # no step after this one starts
        names = [*self._jobs]
        if not room.step_by_step:
            # Later steps get priority, on the machine that has their files and image.
            names.sort(key=lambda name: -self._number[self._jobs[name].step])
        self._rank = {name: rank for rank, name in enumerate(names)}
        self._ready = sorted(self._order.get_ready(), key=self._rank.__getitem__)
        self._running: Counter[Hashable] = Counter()

    def next(self) -> Job | None:
        """Returns a job that may start now; it counts as running until it is over."""
        full: set[Hashable] = set()
        for name in self._ready:
            job, kind = self._jobs[name], self._kind[name]
            if kind in full or not self._is_steps_turn(job.step):
                continue
            if self._running[kind] >= self._room.room(kind):
                full.add(kind)
                continue
            self._ready.remove(name)
            self._running[kind] += 1
            return job
        return None

    def over(self, job: Job, *, passed: bool) -> None:
        self._running[self._kind[job.name]] -= 1
        self._left[job.step] -= 1
        if not passed:
            self._last = min(self._last, self._number[job.step])
            return
        self._order.done(job.name)
        self._ready = sorted((*self._ready, *self._order.get_ready()), key=self._rank.__getitem__)

    def left(self, step: str) -> int:
        """Returns how many jobs of a step are not over."""
        return self._left[step]

    def _is_steps_turn(self, step: str) -> bool:
        number = self._number[step]
        if number > self._last:
            return False
        earlier = [other for other, n in self._number.items() if n < number]
        return not (self._room.step_by_step and any(self._left[other] for other in earlier))

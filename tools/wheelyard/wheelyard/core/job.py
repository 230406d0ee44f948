"""Defines a job: one piece of a step, as plain data that can be compared and stored.

`inputs` names everything that the result depends on, and the step's `run` is given nothing else: JSON values, and
references to files. `Made` refers to files that other jobs make; the record turns it into their paths and digests.
`Source` refers to files of the project. `Passed` names jobs that must have passed on the same files before this one may
run.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Needs:
    """The requirements of a job on its machine."""

    arch: str | None = None  # None: any
    engine: bool = False  # containers
    gpu: bool = False
    network: bool = False
    memory_gib: int = 0
    secrets: bool = False  # runs where the release started: credentials, the embedded index


@dataclass(frozen=True)
class Made:
    jobs: tuple[str, ...]


@dataclass(frozen=True)
class Passed:
    jobs: tuple[str, ...]


@dataclass(frozen=True)
class Source:
    files: Mapping[str, str]  # path below the project's root -> sha256


def made(*jobs: str) -> Made:
    return Made(jobs)


def passed(*jobs: str) -> Passed:
    return Passed(jobs)


@dataclass(frozen=True)
class Job:
    step: str
    unit: str
    needs: Needs
    inputs: Mapping[str, Any]
    # Patterns of the files that it makes, as paths below the release folder. A leading `?` marks optional files.
    outputs: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.step}/{self.unit}"

    @property
    def after(self) -> list[str]:
        """The jobs that must have passed before this one."""
        references = [v for v in self.inputs.values() if isinstance(v, Made | Passed)]
        return list(dict.fromkeys(job for reference in references for job in reference.jobs))


@dataclass(frozen=True)
class Graph:
    """All jobs of a release and their dependencies; the same for every runner, wherever it runs them."""

    jobs: dict[str, Job]  # in an order in which they can run

    def of_step(self, step: str) -> list[Job]:
        return [job for job in self.jobs.values() if job.step == step]

    @classmethod
    def of(cls, jobs: Iterable[Job]) -> "Graph":
        """Builds a graph; checks that every job comes after those that it waits for, and that no name is used twice."""
        known: dict[str, Job] = {}
        for job in jobs:
            assert job.name not in known, f"two jobs are named {job.name}"
            for name in job.after:
                assert name in known, f"{job.name} waits for {name}, which does not come before it"
            known[job.name] = job
        return cls(known)

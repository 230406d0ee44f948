"""All jobs of a release and who waits for whom; a runner takes it, wherever it runs them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from wheelyard.core.job import Job


@dataclass(frozen=True)
class Graph:
    jobs: dict[str, Job]  # in an order in which they can run

    def of_step(self, step: str) -> list[Job]:
        return [job for job in self.jobs.values() if job.step == step]

    @property
    def steps(self) -> list[str]:
        return list(dict.fromkeys(job.step for job in self.jobs.values()))

    def before(self, job: Job) -> Iterator[Job]:
        """The jobs that a job directly waits for."""
        return (self.jobs[name] for name in job.after)


def make(jobs: Iterable[Job]) -> Graph:
    """Checks that every job comes after those that it waits for, and that no name is used twice."""
    known: dict[str, Job] = {}
    for job in jobs:
        assert job.name not in known, f"two jobs are named {job.name}"
        for name in job.after:
            assert name in known, f"{job.name} waits for {name}, which does not come before it"
        known[job.name] = job
    return Graph(known)

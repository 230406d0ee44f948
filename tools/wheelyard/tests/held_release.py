"""Runs `wheelyard release`, but does not let it pass a given place: `held_release.py PLACE`.

The first of PLACES from there on that has something to do is printed when it begins, runs as usual, and then waits
until the release is stopped or killed. So whoever has read that line can kill the release in that place.
"""

import sys
from collections.abc import Callable

from wheelyard import cli
from wheelyard.core import shell
from wheelyard.core.job import Job
from wheelyard.run.runner import Runner
from wheelyard.steps import STEPS

PLACES = ("start", *STEPS, "report")  # in this order
REACHED = "reached: "


def main(first: str) -> int:
    reached: list[str] = []

    def come_to(place: str) -> None:
        if not reached and PLACES.index(place) >= PLACES.index(first):
            reached.append(place)
            # Written in one piece: print() writes the end of a line separately, and other threads write too.
            sys.stdout.write(f"{REACHED}{place}\n")
            sys.stdout.flush()

    def held(place: str, work: Callable[[], None]) -> None:
        come_to(place)
        work()
        if place in reached:
            shell.stopping.wait()

    run, run_job, report = Runner.run, Runner._run_job, cli._report

    def held_run(runner: Runner, jobs: list[Job], *, force: bool) -> None:
        held("start", lambda: None)
        run(runner, jobs, force=force)

    def held_job(runner: Runner, job: Job) -> None:
        held(job.step, lambda: run_job(runner, job))

    Runner.run, Runner._run_job = held_run, held_job  # type: ignore[method-assign]
    cli._report = lambda *words: held("report", lambda: report(*words))
    come_to("start")
    sys.argv[1:] = ["release"]
    return cli.main()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

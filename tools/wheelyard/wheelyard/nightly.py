"""Builds the package on torch's newest build and runs its tests with it, to find a break before torch's release.

    wheelyard nightly [--torch-index URL]    without an index: the newest on PyPI

The steps are those of a release: the image, the wheel, its tests, and `wheelscope link`. The results are in
build/nightly and are not published.
"""

import dataclasses
import os
from pathlib import Path

from wheelyard import steps
from wheelyard.config.matrix import RunCell, Torch
from wheelyard.core.progress import Display
from wheelyard.plan import plan as planning
from wheelyard.plan import project
from wheelyard.plan.plan import Options, Plan
from wheelyard.problem import Problem
from wheelyard.run import local
from wheelyard.run.runner import Runner, only_run
from wheelyard.torch_table import versions

NAME = "nightly"
LAST = "verify"


def newest(index: str, python: str, machine: str) -> str:
    """Returns the version of the newest torch that an index has for a Python."""
    options = ["--pre", *([f"--index-url={index}"] if index else [])]
    if not (known := versions(python, machine, *options)):
        raise Problem(f"pip finds no torch for Python {python} on {index or 'PyPI'}")
    return known[0]


def with_torch(plan: Plan, version: str, index: str, python: str) -> Plan:
    """Returns the plan with that torch alone: wheels are built on its headers, and run with it."""
    torch = Torch(version, [python], ["cpu"], index={"cpu": index} if index else {})
    universal = dataclasses.replace(plan.matrix.strategy.universal, torch=NAME)
    alone = plan.edited(
        torch={NAME: torch},
        strategy={"default": "universal", "universal": universal},
        verify={"run": [RunCell(NAME, python)]},
    )
    return dataclasses.replace(alone, torch_pins={})


def run(plan: Plan, display: Display) -> None:
    graph = steps.planned(plan, LAST)
    with only_run(plan.project.release_folder) as record:
        here = local.Here(plan.project.release_folder, display)
        place = local.Local(plan.project.root, steps.module, here)
        # The gate's rules are for releases.
        jobs = [job for job in graph.jobs.values() if job.step != "gate"]
        Runner(graph, record, display, place).run(jobs, force=False)


def main(index: str) -> None:
    root = project.find(Path.cwd())
    os.environ["RELEASE_FOLDER"] = str(root / "build" / NAME)
    plan = planning.load(Options(), root)
    plan = plan.asked(wanted=(plan.machine,))
    python = next(c.python for c in reversed(plan.matrix.verify.run) if not c.slow)
    version, display = newest(index, python, plan.machine), Display()
    display.say(f"torch {version}, Python {python}")
    run(with_torch(plan, version, index, python), display)

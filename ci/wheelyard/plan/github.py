"""The plan as GitHub's job matrices, each of at most 256 jobs, every job on a native runner.

A workflow's matrix has a chunk for each job, and calls another workflow whose matrix has the chunk's jobs.
"""

import dataclasses
import json
from typing import Any

from wheelyard.plan.cells import run_cells
from wheelyard.plan.plan import Plan

LIMIT = 256  # of jobs in a matrix


def matrices(plan: Plan) -> dict[str, Any]:
    """`name` is for people, `wheel` and `task` are what wheelyard is told."""
    plan = dataclasses.replace(plan, options=dataclasses.replace(plan.options, place="github"))
    builds = [
        {"name": w.name, "arch": w.arch, "runner": plan.matrix.arch[w.arch].runner}
        for w in plan.wheels
    ]
    return {
        "build": chunks(builds),
        "verify": chunks(_verify(plan)),
        "smoke": {"include": _smoke(plan)},
    }


def _verify(plan: Plan) -> list[dict[str, str]]:
    """For each architecture a job for each run cell, and one for all links."""
    found = []
    for arch, facts in plan.matrix.arch.items():
        units = {
            f"torch {cell.torch}, Python {cell.python}": f"*-torch{cell.torch}-python{cell.python}"
            for cell in run_cells(plan.matrix)
        }
        units["link to every torch"] = "*-link"
        found += [
            {"name": f"{arch}, {name}", "arch": arch, "runner": facts.runner,
             "wheel": f"{arch}*", "task": f"{arch}{unit}"}
            for name, unit in units.items()
        ]  # fmt: skip
    return found


def _smoke(plan: Plan) -> list[dict[str, str]]:
    return [
        {"name": arch, "arch": arch, "runner": facts.runner, "wheel": f"{arch}*"}
        for arch, facts in plan.matrix.arch.items()
    ]


def chunks(jobs: list[dict[str, str]]) -> dict[str, Any]:
    """A matrix of chunks, each a matrix of jobs as text."""
    parts = [jobs[start : start + LIMIT] for start in range(0, len(jobs), LIMIT)]
    return {
        "include": [
            {"chunk": str(number), "jobs": json.dumps({"include": part})}
            for number, part in enumerate(parts, 1)
        ]
    }

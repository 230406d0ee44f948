"""Writes the plan as GitHub job matrices of at most 256 jobs each, every job on a native runner.

A workflow's matrix has one entry per chunk of jobs, and calls another workflow whose matrix has the chunk's jobs.
"""

import glob
import json
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Any

from wheelyard.plan.cells import run_cells
from wheelyard.plan.plan import Plan

LIMIT = 256  # jobs in a matrix
# The artifacts of the workflows, and the jobs that each may hand on. {} stands for what the * of its name matches.
ARTIFACTS = {
    "sdist": ("build/sdist",),
    "build-*": ("build/{}", "repair/{}", "repair/{}-sm*"),
    "gate": ("gate/*",),
    "smoke-*": ("smoke/{}", "smoke/{}-*"),
    "gpu": ("gpu/*",),
    "sign": ("attest/*",),
    "testpypi": ("publish/testpypi",),
    "install": ("install/testpypi-*",),
    "pypi": ("publish/pypi",),
}


def may_hand_on(plan: Plan) -> Callable[[str, str], bool]:
    """Returns a function that tells whether an artifact may hand on a job. A job of verify.yml may hand on the cells
    that the plan gives it."""
    cells = {
        f"verify-{chunk['chunk']}-{number}": f"verify/{job['task']}"
        for chunk in matrices(plan)["verify"]["include"]
        for number, job in enumerate(json.loads(chunk["jobs"])["include"])
    }

    def may(artifact: str, job: str) -> bool:
        if artifact in cells:
            return fnmatchcase(job, cells[artifact])
        for pattern, jobs in ARTIFACTS.items():
            if fnmatchcase(artifact, pattern):
                unit = glob.escape(artifact.removeprefix(pattern.rstrip("*")))
                return any(fnmatchcase(job, known.replace("{}", unit)) for known in jobs)
        return False

    return may


def matrices(plan: Plan) -> dict[str, Any]:
    """Returns the job matrices. `name` is for people; `wheel` and `task` are arguments for wheelyard."""
    plan = plan.asked(place="github")
    builds = [
        {"name": w.name, "arch": w.arch, "runner": plan.matrix.arch[w.arch].runner}
        for w in plan.wheels
    ]
    smoke = [
        {"name": arch, "arch": arch, "runner": plan.matrix.arch[arch].runner, "wheel": f"{arch}*"}
        for arch in _archs(plan)
    ]
    return {
        "build": chunks(builds),
        "verify": chunks(_verify(plan)),
        "smoke": {"include": smoke},
        "gpu": plan.matrix.publish.gpu_runner,
    }


def _verify(plan: Plan) -> list[dict[str, str]]:
    """Lists a job for each cell that is run, and one for all links of an architecture, if there is anything to do."""
    found = []
    for arch in _archs(plan):
        wheels = [wheel for wheel in plan.wheels if wheel.arch == arch]
        natives = [wheel for wheel in wheels if wheel in plan.natives]
        run = {cell for wheel in natives for cell in plan.cells_run(wheel, debian=True)}
        units = {
            f"torch {c.torch}{' of Debian' if c.debian else ''}, Python {c.python}": f"*-{c.name}"
            for c in run_cells(plan.matrix)
            if c in run
        }
        if any(map(plan.links, wheels)):
            units["link to every torch"] = "*-link"
        found += [
            {"name": f"{arch}, {name}", "arch": arch, "runner": plan.matrix.arch[arch].runner,
             "wheel": f"{arch}*", "task": f"{arch}{unit}"}
            for name, unit in units.items()
        ]  # fmt: skip
    return found


def _archs(plan: Plan) -> list[str]:
    """Architectures with at least one wheel."""
    return list(dict.fromkeys(wheel.arch for wheel in plan.wheels))


def chunks(jobs: list[dict[str, str]]) -> dict[str, Any]:
    """Splits jobs into a matrix of chunks, each a matrix of jobs as text."""
    parts = [jobs[start : start + LIMIT] for start in range(0, len(jobs), LIMIT)]
    return {
        "include": [
            {"chunk": str(number), "jobs": json.dumps({"include": part})}
            for number, part in enumerate(parts, 1)
        ]
    }

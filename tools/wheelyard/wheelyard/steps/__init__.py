"""Lists the steps of a release, in their order. Each is a module with `jobs(plan)` and `run(job, workspace)`.

`jobs` returns what there is to do, as data; `run` does one of these jobs and sees nothing but that job's inputs and its
workspace. It returns a line for people; its real results are the files that it leaves in `workspace.out`. A step may
also have `check(plan, record)`, which raises if the step cannot be started.
"""

import importlib
from types import ModuleType

from wheelyard.core.job import Graph
from wheelyard.plan.plan import Plan

HELP = {
    "image": "make the build and verify images",
    "build": "make the sdist, and from it the wheels, with cibuildwheel",
    "repair": "give the wheels their manylinux tag with auditwheel, their SBOM, and their variants",
    "gate": "judge the wheels: wheelscope, twine, check-wheel-contents",
    "verify": "run the package's tests on each torch and Python, link against the rest",
    "gpu": "run the wheels on this machine's GPU, and write the evidence",
    "smoke": "run each wheel once",
    "attest": "sign PEP 740 attestations with this job's GitHub identity",
    "publish": "upload to the index with twine",
    "install": "install from the index by name, and smoke-test again",
}
ORDER = tuple(HELP)
# Steps that only some runners can do: they need a GPU, or an identity to sign with.
ELSEWHERE = ("gpu", "attest")
STEPS = tuple(step for step in ORDER if step not in ELSEWHERE)


def module(step: str) -> ModuleType:
    return importlib.import_module(f"wheelyard.steps.{step}")


def planned(plan: Plan, last: str = "install") -> Graph:
    """Returns the jobs of all steps up to `last`."""
    steps = [step for step in ORDER[: ORDER.index(last) + 1] if is_there(step, plan)]
    if last not in steps:  # asked for by name
        steps.append(last)
    return Graph.of(job for step in steps for job in module(step).jobs(plan))


def is_there(step: str, plan: Plan) -> bool:
    """Whether a step is part of this plan: some runners can do more than others, and some do not need every step."""
    if step == "image":  # in a cluster, each machine makes the images that its jobs need
        return plan.options.place != "cluster"
    return step in STEPS or plan.has_step(step)


def whole_release(plan: Plan) -> list[str]:
    """Returns the steps that `wheelyard release` runs."""
    elsewhere = plan.options.place == "github"  # where they are separate jobs
    return [s for s in ORDER if is_there(s, plan) and (s in STEPS or not elsewhere)]

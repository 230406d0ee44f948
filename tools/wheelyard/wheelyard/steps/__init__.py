"""The steps of a release, in their order. Each is a module with `jobs(plan)` and `run(job, workspace)`.

`jobs` says what there is to do, as data; `run` does one of them and sees nothing but that job's inputs and its
workspace. What it returns is a line for people; what counts are the files that it leaves in `workspace.out`. A step
may also have `check(plan, record)`: what must hold before it is started.
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
    "smoke": "run each wheel once here",
    "attest": "sign PEP 740 attestations with this job's GitHub identity",
    "publish": "upload to the index with twine",
    "install": "install from the index by name, and smoke-test again",
}
ORDER = tuple(HELP)
# Only where a runner has what they need: a GPU, an identity to sign with.
ELSEWHERE = ("gpu", "attest")
STEPS = tuple(step for step in ORDER if step not in ELSEWHERE)


def module(step: str) -> ModuleType:
    return importlib.import_module(f"wheelyard.steps.{step}")


def planned(plan: Plan, last: str = "install") -> Graph:
    """The jobs of all steps up to `last`."""
    steps = [step for step in ORDER[: ORDER.index(last) + 1] if is_there(step, plan)]
    if last not in steps:  # asked for by its name
        steps.append(last)
    return Graph.of(job for step in steps for job in module(step).jobs(plan))


def is_there(step: str, plan: Plan) -> bool:
    """Whether a step is part of this plan: some runners can do more, and some have no use for all."""
    if step == "image":  # in a cluster, each machine makes the images that its jobs need
        return plan.options.place != "cluster"
    return step in STEPS or plan.has_step(step)


def whole_release(plan: Plan) -> list[str]:
    """The steps that `wheelyard release` runs."""
    elsewhere = plan.options.place == "github"  # where they are jobs of their own
    return [s for s in ORDER if is_there(s, plan) and (s in STEPS or not elsewhere)]

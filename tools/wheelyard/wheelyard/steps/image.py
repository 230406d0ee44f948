"""Image: makes the images in which wheels are built and verified, before any job needs them.

A list of all packages in an image goes into the record. It shows whether two machines have the same image, and whether
an image has changed.
"""

from collections import Counter

from wheelyard.core.job import Job, Needs
from wheelyard.core.record import Record
from wheelyard.core.workspace import Workspace
from wheelyard.plan.plan import Plan
from wheelyard.problem import Problem, counted
from wheelyard.tools import images, packages


def check(plan: Plan, record: Record) -> None:
    """Checks that every image can be made, before the first one is begun."""
    lacking = Counter(filter(None, map(plan.lacks, plan.wheels)))
    if lacking:
        raise Problem("\n".join(f"{counted(n, 'wheel')}: {lack}" for lack, n in lacking.items()))


def jobs(plan: Plan) -> list[Job]:
    recipes = [images.for_build(plan, wheel) for wheel in plan.wheels]
    runs = dict.fromkeys((c, w.arch) for w in plan.natives for c in plan.cells_run(w, debian=True))
    recipes += [images.for_verify(plan, cell, arch) for cell, arch in runs]
    by_tag = {recipe["tag"]: recipe for recipe in recipes}
    several = len({recipe["machine"] for recipe in by_tag.values()}) > 1
    return [_job(r, _unit(r, several)) for r in sorted(by_tag.values(), key=images.unit)]


def _job(recipe: images.Recipe, unit: str) -> Job:
    needs = Needs(recipe["machine"], engine=True, network=True)
    return Job("image", unit, needs, {"image": recipe}, (f"packages/{unit}.txt",))


def _unit(recipe: images.Recipe, several: bool) -> str:
    return images.unit(recipe) + (f"-{recipe['machine']}" if several else "")


def run(job: Job, workspace: Workspace) -> str:
    packages.list_packages(workspace, f"packages/{job.unit}.txt")
    return str(job.inputs["image"]["tag"])

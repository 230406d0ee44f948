"""Smoke: runs each wheel once in a fresh container. The same program runs on GPU machines and after installations."""

import dataclasses
import json
import shlex
from pathlib import Path
from typing import Any

from wheelyard.core import digest
from wheelyard.core.digest import sha256
from wheelyard.core.job import Job, Needs, made
from wheelyard.core.workspace import Workspace
from wheelyard.plan.cells import Wheel
from wheelyard.plan.plan import Plan
from wheelyard.tools import images

PROGRAM = Path(__file__).resolve().parent.parent / "programs/smoke.py"


def jobs(plan: Plan) -> list[Job]:
    return [job for wheel in plan.natives for job in _job(plan, wheel)]


def _job(plan: Plan, wheel: Wheel) -> list[Job]:
    cells = plan.cells_run(wheel)
    if not cells:
        return []
    inputs = {
        "wheel": made(f"repair/{wheel.name}"),
        "image": images.for_verify(plan, cells[0], wheel.arch),
        **spec(plan),
        "code": digest.code(__name__),
    }
    needs = Needs(wheel.arch, engine=True)
    return [Job("smoke", wheel.name, needs, inputs, (f"evidence/{wheel.name}.json",))]


def spec(plan: Plan) -> dict[str, Any]:
    """Returns the settings of the smoke test, as inputs of a job."""
    facts = plan.matrix.smoke
    return {
        "smoke": dataclasses.asdict(facts),
        "import_name": plan.project.import_name,
        "program": sha256(PROGRAM),
    }


def words(inputs: Any, folder: Path, seen_as: str) -> list[str]:
    """Returns the program's arguments; a spec is written into `folder`, which the program sees as `seen_as`."""
    smoke = inputs["smoke"]
    told = ["--import-name", inputs["import_name"]]
    if smoke["spec"]:
        told += ["--spec-command", smoke["spec"]]
    elif smoke["checks"]:
        (folder / "spec.json").write_text(
            json.dumps({"checks": smoke["checks"], "timing": smoke["timing"]})
        )
        told += ["--spec", f"{seen_as}/spec.json"]
    return told + (["--command", smoke["command"]] if smoke["command"] else [])


def run(job: Job, workspace: Workspace) -> str:
    wheel, told = workspace.file("wheel"), workspace.scratch("spec")
    arguments = [f"/wheel/{wheel.name}", *words(workspace.inputs, told, "/spec")]
    options = ["--network=none", *mounts(told), f"--volume={wheel.parent}:/wheel:ro"]
    options += [f"--volume={workspace.out}:/out"]
    target = f"/out/evidence/{job.unit}.json"
    command = ["python", "/smoke.py", *arguments, "--evidence", target]
    images.run(workspace, options, command, what=f"the smoke test of {wheel.name}")
    return "run here"


def mounts(told: Path) -> list[str]:
    """Mounts the program and its spec in a container, and sets the folder to run them in."""
    return [f"--volume={PROGRAM}:/smoke.py:ro", f"--volume={told}:/spec:ro", "--workdir=/tmp"]


def installed_command(inputs: Any, folder: Path, wheel: str, evidence: str) -> str:
    """Returns the smoke test of an installed wheel as a line for a shell."""
    arguments = [wheel, *words(inputs, folder, "/spec"), "--installed", "--evidence", evidence]
    return f"python /smoke.py {shlex.join(arguments)}"

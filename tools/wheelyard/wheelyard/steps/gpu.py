"""GPU: the smoke test on this machine's GPU, for each wheel that needs such evidence to leave.

It runs in a Python that has torch: TORCH_PYTHON, or else python3.
"""

import json
import os

from wheelyard.core import digest, shell
from wheelyard.core.environment import GPU
from wheelyard.core.job import Job, Needs, made
from wheelyard.core.record import Facts
from wheelyard.core.workspace import Workspace
from wheelyard.plan.plan import Plan
from wheelyard.problem import Problem
from wheelyard.steps import smoke


def jobs(plan: Plan) -> list[Job]:
    wanted = plan.matrix.publish.gpu_evidence
    return [_job(plan, wheel.name, wheel.arch) for wheel in plan.wheels if wheel.arch in wanted]


def _job(plan: Plan, name: str, arch: str) -> Job:
    inputs = {"wheel": made(f"repair/{name}"), **smoke.spec(plan), "code": digest.code(__name__)}
    return Job("gpu", name, Needs(arch, gpu=True), inputs, (f"evidence/gpu-{name}.json",))


def run(job: Job, workspace: Workspace) -> Facts:
    wheel = workspace.file("wheel")
    file = workspace.out / f"evidence/gpu-{job.unit}.json"
    folder = workspace.scratch("spec")
    python = os.environ.get("TORCH_PYTHON", "python3")
    command = [
        python,
        "-I",
        smoke.PROGRAM,
        wheel,
        *smoke.words(workspace.inputs, folder, str(folder)),
    ]
    what = f"the smoke test of {wheel.name}"
    shell.run([*command, "--evidence", file], workspace.log, what=what, cwd=folder, allow=GPU)
    gpu = json.loads(file.read_text())["gpu"]
    if not gpu:
        raise Problem("torch sees no GPU here; run this on a machine that has one")
    return {"gpu": gpu, "verdict": f"passed on {gpu['name']}"}

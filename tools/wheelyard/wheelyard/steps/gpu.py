"""GPU: runs the smoke test on a GPU, for each wheel that needs such evidence to be released.

It runs in a Python that has torch: TORCH_PYTHON, or else python3. On a machine without a GPU it hands on committed
evidence instead, which a person made of these very bytes elsewhere, such as in a notebook.
"""

import json
import os
import shlex
import shutil
from pathlib import Path

from wheelyard.core import digest, shell
from wheelyard.core.environment import GPU
from wheelyard.core.job import Job, Needs, Source, made
from wheelyard.core.workspace import Workspace
from wheelyard.plan.plan import Plan
from wheelyard.problem import Problem
from wheelyard.steps import smoke
from wheelyard.tools import evidence


def jobs(plan: Plan) -> list[Job]:
    wanted = plan.matrix.publish.gpu_evidence
    there = plan.natives if plan.options.place == "here" else plan.wheels
    return [_job(plan, wheel.name, wheel.arch) for wheel in there if wheel.arch in wanted]


def _job(plan: Plan, name: str, arch: str) -> Job:
    inputs = {
        "wheel": made(f"repair/{name}"),
        "committed": Source(plan.project.files(evidence.FOLDER)),
        "gpu_tests": plan.gpu_tests,
        "tests": Source(plan.project.files(*plan.matrix.verify.tests) if plan.gpu_tests else {}),
        **smoke.spec(plan),
        "code": digest.code(__name__),
    }
    return Job("gpu", name, Needs(arch, gpu=True), inputs, (f"evidence/gpu-{name}.json",))


def run(job: Job, workspace: Workspace) -> str:
    wheel = workspace.file("wheel")
    file = workspace.out / f"evidence/gpu-{job.unit}.json"
    folder = workspace.scratch("spec")
    tests = workspace.inputs["gpu_tests"]
    is_here = bool(evidence.capabilities())
    words = smoke.words(workspace.inputs, folder, str(folder) if is_here else ".")
    if tests:
        place = str(workspace.sources("tests")) if is_here else "FOLDER"
        words += ["--tests-command", tests["command"], "--tests", place]
    if not is_here:
        return _handed_on(wheel, workspace.sources("committed"), file, shlex.join(words))
    command = [os.environ.get("TORCH_PYTHON", "python3"), "-I", smoke.PROGRAM, wheel, *words]
    what = f"the smoke test of {wheel.name}"
    shell.run([*command, "--evidence", file], workspace.log, what=what, cwd=folder, allow=GPU)
    gpu = json.loads(file.read_text())["gpu"]
    if not gpu:
        raise Problem("torch sees no GPU here; run this on a machine that has one")
    return f"passed on {gpu['name']}"


def _handed_on(wheel: Path, committed: Path, target: Path, told: str) -> str:
    """Takes the committed evidence about these bytes; the step that publishes judges whether it counts."""
    of_wheel = digest.sha256(wheel)
    for file in sorted(committed.rglob("*.json")):
        seen, _ = evidence.read(file)
        if seen.get("sha256") == of_wheel and seen.get("gpu"):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
            return f"{file.name}: ran on {seen['gpu']['name']}"
    raise Problem(
        f"nvidia-smi sees no GPU here, and no file in {evidence.FOLDER} is about {wheel.name} with the sha256\n"
        f"  {of_wheel}\n"
        "Run this where there is a GPU ([publish] gpu_runner in ci/matrix.toml names the workflow's runner), or take\n"
        f"the wheel and {smoke.PROGRAM.name} to a machine or notebook that has one:\n"
        f"  python {smoke.PROGRAM.name} {wheel.name} {told} --evidence {wheel.stem}.json\n"
        f"Commit that file in {evidence.FOLDER}, and release that commit: the wheel will have the same bytes"
    )

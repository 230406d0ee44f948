"""Repair: `auditwheel repair` gives each wheel the manylinux tag it deserves; then its SBOM."""

import shutil
import sys
from pathlib import Path

from ci import sbom, shell
from ci.plan import WheelBuild, python_tag
from ci.project import sha256
from ci.release import Release
from ci.state import Result, Task
from ci.verify import tool_digest

# torch's own libraries are the user's; they are never copied into a wheel.
EXCLUDED = ["libtorch*", "libc10*"]


def tasks(release: Release) -> list[Task]:
    return [_task(release, build) for build in release.builds]


def _task(release: Release, build: WheelBuild) -> Task:
    (built,) = release.state.outputs(f"build/{build.name}")

    def repair(log: Path) -> Result:
        output = release.folder("work", "repaired", build.name)
        shutil.rmtree(output)
        command = [sys.executable, "-m", "auditwheel", "repair", "--plat", "auto"]
        command += [f"--exclude={pattern}" for pattern in EXCLUDED]
        epoch = {"SOURCE_DATE_EPOCH": str(release.matrix.build.source_date_epoch)}
        shell.run(
            [*command, "--wheel-dir", output, built], log, what=f"repairing {built.name}", env=epoch
        )
        (wheel,) = output.glob("*.whl")
        if build.python and "-py3-none-" in wheel.name:
            _bind_to_python(wheel, build.python, log)
            (wheel,) = output.glob("*.whl")
        sbom.add(wheel, sbom.document(sbom.look_into(wheel), build.toolkit))
        return Result([Path(shutil.move(wheel, release.wheelhouse / wheel.name))])

    inputs = {"wheel": sha256(built), "exclude": EXCLUDED, "tool": tool_digest()}
    return Task("repair", build.name, inputs, repair)


def _bind_to_python(wheel: Path, python: str, log: Path) -> None:
    """Gives a wheel that would serve every Python the tag of one, where each has its own wheel."""
    tag = python_tag(python)
    command = [sys.executable, "-m", "wheel", "tags", "--remove"]
    tags = [f"--python-tag={tag.rstrip('t')}", f"--abi-tag={tag}"]
    shell.run([*command, *tags, wheel], log, what=f"tagging {wheel.name} for Python {python}")

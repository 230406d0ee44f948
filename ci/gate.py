"""Gate: may the wheels be released? wheelscope check and cover, twine, check-wheel-contents."""

import sys
from pathlib import Path

from ci import matrix, shell
from ci.project import ROOT, sha256
from ci.release import Release
from ci.state import Result, Task
from ci.verify import WHEELSCOPE, tool_digest

POLICY = ROOT / "ci/policy.toml"


def tasks(release: Release) -> list[Task]:
    made = [_file_task(release, name, file) for name, file in release.artifacts().items()]
    if release.builds == release.plan.builds:
        made.append(_cover_task(release))
    return made


def _file_task(release: Release, name: str, file: Path) -> Task:
    """One file by itself."""
    checks: list[tuple[str, list[str | Path]]] = [
        ("twine check", [sys.executable, "-m", "twine", "check", "--strict", file])
    ]
    if file.suffix == ".whl":
        checks += [
            ("wheelscope check", [WHEELSCOPE, "check", "--policy", POLICY, file]),
            ("check-wheel-contents", [sys.executable, "-m", "check_wheel_contents", file]),
        ]

    def judge(log: Path) -> Result:
        for what, command in checks:
            shell.run(command, log, what=f"{what} of {file.name}")
        return Result(facts={"checks": [what for what, _ in checks]})

    inputs = {"file": release.sha256(name), "policy": sha256(POLICY), "tool": tool_digest()}
    return Task("gate", name, inputs, judge)


def _cover_task(release: Release) -> Task:
    """All wheels together: no cell of the matrix may be unserved."""
    wheels = release.wheels()

    def cover(log: Path) -> Result:
        command = [WHEELSCOPE, "cover", "--matrix", matrix.FILE]
        shell.run([*command, *wheels.values()], log, what="wheelscope cover")
        served = f"{len(wheels)} wheels serve {len(release.plan.cells)} cells"
        return Result(facts={"cells": len(release.plan.cells), "verdict": served})

    inputs = {
        "wheels": [release.sha256(name) for name in wheels],
        "matrix": sha256(matrix.FILE),
        "tool": tool_digest(),
    }
    return Task("gate", "cover", inputs, cover)

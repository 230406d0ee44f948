"""GPU: the smoke test on this machine's GPU, for each wheel that needs such evidence to leave.

It runs in a Python that has torch: TORCH_PYTHON, or else python3.
"""

import json
import os
from pathlib import Path

from ci import shell
from ci.errors import Problem
from ci.project import ROOT
from ci.release import Release
from ci.state import Result, Task


def tasks(release: Release) -> list[Task]:
    wanted = release.matrix.publish.gpu_evidence
    return [_task(release, build.name) for build in release.builds if build.arch in wanted]


def _task(release: Release, name: str) -> Task:
    wheel = release.wheels()[name]

    def smoke(log: Path) -> Result:
        file = release.folder("evidence") / f"gpu-{name}.json"
        python = os.environ.get("TORCH_PYTHON", "python3")
        shell.run(
            [python, ROOT / "ci/smoke.py", wheel, "--evidence", file],
            log,
            what=f"the smoke test of {wheel.name}",
        )
        gpu = json.loads(file.read_text())["gpu"]
        if not gpu:
            file.unlink()
            raise Problem("torch sees no GPU here; run this on a machine that has one")
        return Result([file], {"gpu": gpu, "verdict": f"passed on {gpu['name']}"})

    return Task("gpu", name, {"wheel": release.sha256(name)}, smoke)

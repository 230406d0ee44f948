"""What is known of each wheel from running it: here, and on a GPU machine.

That machine is another job, which hands its evidence on in the wheelhouse, or one that a person
used; that evidence is committed in docs/evidence.
"""

import json
from pathlib import Path
from typing import Any

from ci import image
from ci.project import ROOT, wheelhouse
from ci.release import Release
from ci.state import Result, Task

FOLDER = ROOT / "docs/evidence"


def tasks(release: Release) -> list[Task]:
    """One task a wheel: native wheels are run, for every wheel the GPU evidence is looked up."""
    return [_task(release, build.arch, build.name) for build in release.builds]


def _task(release: Release, arch: str, name: str) -> Task:
    digest = release.sha256(name)
    gpu = on_gpu(digest)

    def look(log: Path) -> Result:
        outputs = [_run_here(release, name, log)] if arch == release.machine else []
        seen = [f"{e['gpu']['name']}, torch {e['torch']}" for e in gpu]
        verdict = f"GPU evidence: {'; '.join(seen)}" if seen else "no GPU evidence for these bytes"
        return Result(
            outputs, {"gpu": seen, "verdict": f"run here; {verdict}" if outputs else verdict}
        )

    return Task("smoke", name, {"wheel": digest, "evidence": [e["file"] for e in gpu]}, look)


def on_gpu(digest: str) -> list[dict[str, Any]]:
    """The evidence that the wheel with this sha256 passed on a GPU, each once."""
    found: dict[str, dict[str, Any]] = {}
    files = [*FOLDER.glob("*.json"), *(wheelhouse() / "evidence").glob("*.json")]
    for file in sorted(files):
        evidence = json.loads(file.read_text())
        if evidence.get("sha256") == digest and evidence.get("gpu") and evidence.get("passed"):
            found[json.dumps(evidence, sort_keys=True)] = {"file": file.name, **evidence}
    return list(found.values())


def _run_here(release: Release, name: str, log: Path) -> Path:
    """The smoke test in a fresh container of the first verified cell."""
    output = release.folder("evidence")
    made = image.for_verify(release.matrix, release.matrix.verify.run[0])
    wheel = release.wheels()[name]
    command = ["python", "ci/smoke.py", f"/wheel/{wheel.name}", "--evidence", f"/out/{name}.json"]
    release.engine.run(
        image.ensure(release, made, log),
        ["--network=none", f"--volume={ROOT / 'ci'}:/source/ci:ro", "--workdir=/source",
         f"--volume={wheel.parent}:/wheel:ro", f"--volume={output}:/out"],
        command, log, what=f"the smoke test of {wheel.name}",
    )  # fmt: skip
    return output / f"{name}.json"

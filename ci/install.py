"""Install: pip installs the package by name from the index, and it is smoke-tested again."""

import json
from pathlib import Path

from ci import image, index
from ci.errors import Problem
from ci.project import ROOT
from ci.release import Release
from ci.state import Result, Task


def tasks(release: Release) -> list[Task]:
    natives = [build.name for build in release.builds if build.arch == release.machine]
    return [_task(release, name) for name in natives[:1]]


def _task(release: Release, name: str) -> Task:
    made_in = image.for_verify(release.matrix, release.matrix.verify.run[0])
    wheel = release.wheels()[name]

    def install(log: Path) -> Result:
        output = release.folder("work", "install")
        with index.ready(release) as source:
            script = (
                f"pip install --no-cache-dir --index-url {source.simple} --report /out/pip.json "
                f"{release.project.name}=={release.project.version} && "
                f"python ci/smoke.py /wheel/{wheel.name} --installed --evidence /out/smoke.json"
            )
            options = [
                "--network=host",
                f"--volume={output}:/out",
                f"--volume={wheel.parent}:/wheel:ro",
            ]
            options += [f"--volume={ROOT / 'ci'}:/source/ci:ro", "--workdir=/source"]
            release.engine.run(
                image.ensure(release, made_in, log), options, ["sh", "-c", script], log,
                what=f"installing {release.project.name} from {source.name}",
            )  # fmt: skip
        _check_what_pip_took(
            json.loads((output / "pip.json").read_text()), wheel, release.sha256(name)
        )
        return Result(facts={"installed": wheel.name, "verdict": f"pip took {wheel.name}"})

    inputs = {"wheel": release.sha256(name), "index": release.index, "image": made_in.tag(release)}
    return Task("install", release.index, inputs, install)


def _check_what_pip_took(
    report: dict[str, list[dict[str, dict[str, object]]]], wheel: Path, digest: str
) -> None:
    (taken,) = [entry["download_info"] for entry in report["install"]]
    if digest not in json.dumps(taken["archive_info"]) or wheel.name not in str(taken["url"]):
        raise Problem(f"pip took {taken['url']}, not {wheel.name} with the sha256 that was gated")

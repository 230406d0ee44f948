"""GitHub: the release page of the tag, with all that was made and the proof of it.

Run again, it replaces nothing that is there: only missing files are added.
"""

import json
import shutil
from pathlib import Path

from ci import sbom, shell
from ci.errors import Problem
from ci.project import sha256
from ci.release import Release
from ci.state import Result, Task
from ci.tag import CHANGELOG, section


def tasks(release: Release) -> list[Task]:
    tag = f"v{release.project.version}"
    hashes = {file.name: release.sha256(name) for name, file in release.artifacts().items()}

    def publish(log: Path) -> Result:
        files = assets(release)
        if not shutil.which("gh"):
            raise Problem("GitHub's program `gh` is not installed; it makes the release page")
        there = shell.capture(["gh", "release", "view", tag, "--json", "assets"])
        if there is None:
            shell.run(
                ["gh", "release", "create", tag, "--verify-tag", "--title", tag,
                 "--notes-file", notes(release)],
                log, what=f"making the GitHub release {tag}",
            )  # fmt: skip
        names = {asset["name"] for asset in json.loads(there or '{"assets": []}')["assets"]}
        missing = [file for file in files if file.name not in names]
        if missing:
            shell.run(
                ["gh", "release", "upload", tag, *missing], log, what=f"adding files to {tag}"
            )
        verdict = f"{len(missing)} files added, {len(files) - len(missing)} already there"
        return Result(facts={"added": [file.name for file in missing], "verdict": verdict})

    return [Task("github", tag, {"files": hashes}, publish)]


def assets(release: Release) -> list[Path]:
    """Wheels, sdist, SBOMs, report, record and evidence, and the checksums of them all."""
    folder = release.folder("assets")
    files = list(release.artifacts().values())
    files += [sbom.extract(wheel, folder) for wheel in release.wheels().values()]
    files += [release.wheelhouse / name for name in ("report.html", "release.json")]
    files += sorted((release.wheelhouse / "evidence").glob("*.json"))
    lost = [file.name for file in files if not file.exists()]
    if lost:
        raise Problem(f"{', '.join(lost)} is missing; run `python -m ci report` first")
    sums = folder / "SHA256SUMS"
    sums.write_text("".join(f"{sha256(file)}  {file.name}\n" for file in files))
    return [*files, sums]


def notes(release: Release) -> Path:
    """The changelog's section of this version."""
    text = section(CHANGELOG.read_text(), release.project.version)
    if not text:
        raise Problem(f"CHANGELOG.md says nothing under [{release.project.version}]; write it")
    file = release.folder("assets") / "notes.md"
    file.write_text(text + "\n")
    return file

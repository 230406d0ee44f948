"""GitHub's release page of the tag, with all that was made and the proof of it.

Run again, it replaces nothing that is there: only missing files are added.
"""

import json
import shutil
from pathlib import Path

from wheelyard.core import shell
from wheelyard.core.digest import sha256
from wheelyard.core.record import Record
from wheelyard.plan.plan import Plan
from wheelyard.plan.tag import section
from wheelyard.problem import Problem
from wheelyard.tools import sbom


def publish(plan: Plan, record: Record, folder: Path) -> str:
    """Makes the page, or adds what it lacks; returns what was done. `folder` is for files made on the way."""
    tag = plan.project.version_tag or f"v{plan.project.version}"
    files = assets(plan, record, folder)
    log = folder / "gh.log"
    if not shutil.which("gh"):
        raise Problem("GitHub's program `gh` is not installed; it makes the release page")
    there = shell.capture(["gh", "release", "view", tag, "--json", "assets"])
    if there is None:
        shell.run(
            ["gh", "release", "create", tag, "--verify-tag", "--title", tag, *notes(plan, folder)],
            log, what=f"making the GitHub release {tag}",
        )  # fmt: skip
    names = {asset["name"] for asset in json.loads(there or '{"assets": []}')["assets"]}
    missing = [file for file in files if file.name not in names]
    if missing:
        shell.run(["gh", "release", "upload", tag, *missing], log, what=f"adding files to {tag}")
    return f"{len(missing)} files added, {len(files) - len(missing)} already there"


def assets(plan: Plan, record: Record, folder: Path) -> list[Path]:
    """Wheels, sdist, SBOMs, report, record and evidence, and the checksums of them all."""
    wheels = record.files(*(f"repair/{wheel.name}" for wheel in plan.wheels))
    files = [*record.files("build/sdist"), *wheels]
    files += [sbom.extract(wheel, folder) for wheel in wheels]
    files += [record.wheelhouse / name for name in ("report.html", "release.json")]
    files += sorted((record.wheelhouse / "evidence").glob("*.json"))
    lost = [file.name for file in files if not file.exists()]
    if lost:
        raise Problem(f"{', '.join(lost)} is missing; run `wheelyard report` first")
    sums = folder / "SHA256SUMS"
    sums.write_text("".join(f"{sha256(file)}  {file.name}\n" for file in files))
    return [*files, sums]


def notes(plan: Plan, folder: Path) -> list[str]:
    """What the page says: the changelog's section of this version, or GitHub's own list where there is no changelog."""
    changelog = plan.project.root / "CHANGELOG.md"
    if not changelog.exists() or not plan.project.version:
        return ["--generate-notes"]
    text = section(changelog.read_text(), plan.project.version)
    if not text:
        raise Problem(f"CHANGELOG.md says nothing under [{plan.project.version}]; write it")
    file = folder / "notes.md"
    file.write_text(text + "\n")
    return ["--notes-file", str(file)]

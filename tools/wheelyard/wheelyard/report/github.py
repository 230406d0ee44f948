"""Makes GitHub's release page for the tag, with all files and the evidence for them.

The page stays a draft, which the public cannot see, until every file is there; a file that was cut off on its way
counts as missing. Once public, the page is not changed: another run only compares it, so its checksums stay those of
its files.
"""

import json
import os
import shutil
from pathlib import Path

from packaging.version import Version

from wheelyard.core import shell
from wheelyard.core.digest import sha256
from wheelyard.core.environment import CREDENTIALS, NETWORK
from wheelyard.core.record import Facts, Record
from wheelyard.plan.plan import Plan
from wheelyard.problem import Problem, counted
from wheelyard.tag import section
from wheelyard.tools import sbom

SUMS = "SHA256SUMS"


def publish(plan: Plan, record: Record) -> str:
    """Makes the page, or completes it; returns what was done."""
    folder = record.folder / "assets"  # for files made on the way
    folder.mkdir(exist_ok=True)
    tag = plan.project.version_tag or f"v{plan.project.version}"
    log = folder / "gh.log"
    if not shutil.which("gh"):
        raise Problem("GitHub's program `gh` is not installed; it makes the release page")
    files = assets(plan, record, folder)
    page = _page(tag)
    if page is None:
        words = ["--draft", "--verify-tag", "--title", tag, *notes(plan, folder)]
        words += ["--prerelease"] if Version(tag).is_prerelease else []  # never GitHub's "Latest"
        _gh(["create", tag, *words], log, f"making the page of {tag}")
    elif not page["isDraft"]:
        return _compared(tag, record.files(*plan.released), folder, log)
    _gh(["upload", tag, "--clobber", *files], log, f"adding files to {tag}")
    if lost := _lacking(_page(tag), files):
        raise Problem(f"GitHub does not have {', '.join(lost)} in full; run the same job again")
    _gh(["edit", tag, "--draft=false"], log, f"publishing {tag}")
    return f"{counted(len(files), 'file')} on the page of {tag}"


def _gh(words: list[object], log: Path, what: str) -> None:
    """Runs GitHub's program with its settings in the project's folder, whose remote tells it the repository."""
    own = [name for name in os.environ if name.startswith(("GH_", "GITHUB_"))]
    allow = (*NETWORK, *CREDENTIALS, *own)
    shell.run(["gh", "release", *words], log, what=what, allow=allow, cwd=Path.cwd())


def _page(tag: str) -> Facts | None:
    """Returns GitHub's data on the page; None if there is no page."""
    found = shell.capture(["gh", "release", "view", tag, "--json", "isDraft,assets"])
    return json.loads(found) if found else None


def _lacking(page: Facts | None, files: list[Path]) -> list[str]:
    """Returns the names of the files that are missing from a page, or incomplete there."""
    there = {a["name"]: a for a in (page or {"assets": []})["assets"]}
    return [
        file.name
        for file in files
        if (a := there.get(file.name)) is None
        or (a["state"], a["size"]) != ("uploaded", file.stat().st_size)
    ]


def _compared(tag: str, files: list[Path], folder: Path, log: Path) -> str:
    """Checks that a public page has the right checksums of this release's files, and changes nothing."""
    target = folder / "there"
    shutil.rmtree(target, ignore_errors=True)
    words: list[object] = ["download", tag, "--pattern", SUMS, "--dir", target]
    _gh(words, log, f"reading the checksums of {tag}")
    lines = (target / SUMS).read_text().splitlines()
    wrong = [file.name for file in files if f"{sha256(file)}  {file.name}" not in lines]
    if wrong:
        raise Problem(
            f"the page of {tag} is public and has other checksums for {', '.join(wrong)}; "
            "a release cannot change: raise the version"
        )
    return f"the page of {tag} is public already, with the same checksums: nothing to add"


def assets(plan: Plan, record: Record, folder: Path) -> list[Path]:
    """Returns wheels, sdist, SBOMs, report, record and evidence, and a file with the checksums of them all."""
    files = record.files(*plan.released)
    files += [sbom.extract(file, folder) for file in files if file.suffix == ".whl"]
    files += [record.folder / "report.html", record.write_whole(folder / "release.json")]
    files += sorted((record.folder / "evidence").glob("*.json"))
    lost = [file.name for file in files if not file.exists()]
    if lost:
        raise Problem(f"{', '.join(lost)} is missing; run `wheelyard report` first")
    sums = folder / SUMS
    sums.write_text("".join(f"{sha256(file)}  {file.name}\n" for file in files))
    return [*files, sums]


def notes(plan: Plan, folder: Path) -> list[str]:
    """Returns gh's arguments for the page's text: the changelog's section of this version, or GitHub's own list without
    a changelog."""
    changelog = plan.project.root / "CHANGELOG.md"
    if not changelog.exists() or not plan.project.version:
        return ["--generate-notes"]
    text = section(changelog.read_text(), plan.project.version)
    if not text:
        raise Problem(f"CHANGELOG.md says nothing under [{plan.project.version}]; write it")
    file = folder / "notes.md"
    file.write_text(text + "\n")
    return ["--notes-file", str(file)]

"""Releases other people's projects as their maintainers would: `python -m maintenance.projects FOLDER [NAME...]`.

Beside this file lies a patch for each project: what its maintainer edits in the files that `wheelyard init` wrote,
under the repository and the commit that it was made for. FOLDER holds clones of those repositories. Each project is
cloned afresh, initialised, patched and released. At most ten lines may be edited, no file of the project's own may
change, and each release must have served at least two torch versions and two Pythons, run in fresh containers and
installed by name.
"""

import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

EDITED_LINES = 10
PATCHES = Path(__file__).parent
WRITTEN = re.compile(r"(.*/)?(ci/|\.github/workflows/|wheelhouse/|\.gitignore$)")
WHEELYARD = Path(sys.executable).with_name("wheelyard")


def main() -> int:
    folder = Path(sys.argv[1]).resolve()
    names = sys.argv[2:] or sorted(patch.stem for patch in PATCHES.glob("*.patch"))
    for name in names:
        patch = (PATCHES / f"{name}.patch").read_text()
        if not (folder / name).is_dir():
            [repository] = told("repository", patch)
            sys.exit(f"error: {folder} has no {name}: git clone {repository} {folder / name}")
    failed = [name for name in names if not released(folder / name)]
    print(f"{len(names) - len(failed)} of {len(names)} projects released", *failed)
    return 1 if failed else 0


def released(clone: Path) -> bool:
    """Whether the project goes through from a fresh clone; says what it saw."""
    patch = PATCHES / f"{clone.name}.patch"
    edited = patch.read_text()
    [commit] = told("commit", edited)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="project-") as scratch:
        fresh = Path(scratch) / clone.name
        log = clone.with_name(f"{clone.name}.log")
        with log.open("w") as stream:
            for command, where in (
                (["git", "clone", "--quiet", clone, fresh], clone.parent),
                (["git", "checkout", "--quiet", commit], fresh),
                ([WHEELYARD, "init", *told("folder", edited)], fresh),
                (["git", "apply", patch], fresh),
                ([WHEELYARD, "release", "--verbose", *cache(clone.parent)], fresh),
            ):
                words = [getattr(word, "name", word) for word in command]
                print("$", *words, file=stream, flush=True)
                done = subprocess.run(command, cwd=where, stdout=stream, stderr=stream)
                if done.returncode != 0:
                    print(f"{clone.name}: failed, see {log}")
                    return False
        faults = [*untouched(fresh), *edits(edited), *served(fresh)]
        minutes = (time.monotonic() - began) / 60
        print(
            f"{clone.name} at {commit[:12]}: {'; '.join(faults) or 'released'} in {minutes:.0f} min"
        )
        for line in summary(fresh):
            print(f"  {line}")
    return not faults


def told(what: str, patch: str) -> list[str]:
    """What a comment above the patch says of the `repository`, of the `commit`, or of the project's `folder` in it."""
    return re.findall(rf"^# {what}: (\S+)$", patch, re.MULTILINE)


def cache(folder: Path) -> list[str]:
    """A compiler cache beside the clones, if somebody made one there."""
    place = folder / "compiler-cache"
    return ["--cache", str(place)] if place.is_dir() else []


def output(command: list[str], folder: Path) -> str:
    return subprocess.run(
        command, cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


def untouched(fresh: Path) -> list[str]:
    """Files of the project's own that are no longer what was cloned."""
    changed = output(["git", "status", "--porcelain", "--untracked-files=all"], fresh).splitlines()
    paths = [line[3:] for line in changed]
    return [f"{path} was changed" for path in paths if not WRITTEN.match(path)]


def edits(patch: str) -> list[str]:
    lines = [line for line in patch.splitlines() if re.match(r"\+(?!\+\+ )", line)]
    return [f"{len(lines)} lines were edited"] if len(lines) > EDITED_LINES else []


def served(root: Path) -> list[str]:
    """What is missing of two torch versions and two Pythons, run and installed by name."""
    faults = []
    for step in ("verify", "install"):
        cells = [re.search(r"-torch([\d.]+)-python([\dt.]+)$", name) for name in passed(root, step)]
        torches = {cell[1] for cell in cells if cell}
        pythons = {cell[2] for cell in cells if cell}
        if len(torches) < 2 or len(pythons) < 2:
            faults.append(f"{step} saw torch {sorted(torches)}, Python {sorted(pythons)} only")
    return faults


def passed(root: Path, step: str) -> dict[str, dict[str, str]]:
    jobs = json.loads((root / "build/release/release.json").read_text())["jobs"]
    return {
        name: job["facts"]
        for name, job in jobs.items()
        if name.startswith(f"{step}/") and job["verdict"] == "passed"
    }


def summary(root: Path) -> list[str]:
    return [
        f"{name}: {facts.get('verdict', '')}"
        for step in ("verify", "install")
        for name, facts in passed(root, step).items()
    ]


if __name__ == "__main__":
    sys.exit(main())

"""Releases other people's projects as their maintainers would: `python scripts/strangers.py FOLDER [NAME...]`.

FOLDER holds clones at the commits that are wanted, and beside each clone NAME a patch NAME.patch: what its maintainer
edits in the files that `wheelyard init` wrote. Each project is cloned afresh, initialised, patched and released. At
most ten lines may be edited, no file of the project's own may change, and each release must have served at least two
torch versions and two Pythons, run in fresh containers and installed by name.
"""

import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

EDITED_LINES = 10
WRITTEN = re.compile(r"(.*/)?(ci/|\.github/workflows/|wheelhouse/|\.gitignore$)")
WHEELYARD = Path(sys.executable).with_name("wheelyard")


def main() -> int:
    folder = Path(sys.argv[1]).resolve()
    names = sys.argv[2:] or sorted(patch.stem for patch in folder.glob("*.patch"))
    if not names:
        sys.exit(
            f"error: {folder} has no NAME.patch beside a clone NAME; see the head of {__file__}"
        )
    failed = [name for name in names if not released(folder / name)]
    print(f"{len(names) - len(failed)} of {len(names)} projects released", *failed)
    return 1 if failed else 0


def released(clone: Path) -> bool:
    """Whether the project goes through from a fresh clone; says what it saw."""
    patch = clone.with_name(f"{clone.name}.patch")
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="stranger-") as scratch:
        fresh = Path(scratch) / clone.name
        subprocess.run(["git", "clone", "--quiet", clone, fresh], check=True)
        commit = output(["git", "rev-parse", "HEAD"], fresh)
        log = clone.with_name(f"{clone.name}.log")
        with log.open("w") as stream:
            for command in (
                [WHEELYARD, "init", *folder_in(patch.read_text())],
                ["git", "apply", patch],
                [WHEELYARD, "release", "--verbose", *cache(clone.parent)],
            ):
                print(
                    "$", *(getattr(word, "name", word) for word in command), file=stream, flush=True
                )
                done = subprocess.run(command, cwd=fresh, stdout=stream, stderr=stream)
                if done.returncode != 0:
                    print(f"{clone.name}: failed, see {log}")
                    return False
        faults = [*untouched(fresh), *edits(patch.read_text()), *served(fresh)]
        minutes = (time.monotonic() - began) / 60
        print(
            f"{clone.name} at {commit[:12]}: {'; '.join(faults) or 'released'} in {minutes:.0f} min"
        )
        for line in summary(fresh):
            print(f"  {line}")
    return not faults


def folder_in(patch: str) -> list[str]:
    """The project's folder in its repository, which `init` is told: a comment `# folder: NAME` above the patch."""
    return re.findall(r"^# folder: (\S+)$", patch, re.MULTILINE)


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
    jobs = json.loads((root / "wheelhouse/release.json").read_text())["jobs"]
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

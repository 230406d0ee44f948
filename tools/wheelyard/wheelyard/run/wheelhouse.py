"""Fills wheelhouse/ with the distributions of a release and nothing else, so that `twine check wheelhouse/*` works."""

import shutil
from contextlib import suppress
from pathlib import Path

from wheelyard.core.record import Record
from wheelyard.plan.plan import Plan

KINDS = (".whl", ".tar.gz")


def hide_from_git(folder: Path) -> None:
    """Makes a folder that ignores itself, so that no project has to; one that is there stays as it is. Where it cannot
    be made, whoever writes into it says so."""
    with suppress(OSError):
        if not folder.exists():
            folder.mkdir(parents=True)
            (folder / ".gitignore").write_text("*\n")


def fill(plan: Plan, record: Record) -> str:
    """Copies what an index takes of this release, and removes the project's distributions that are not of it. Returns
    why it could not, if so."""
    folder = plan.project.wheelhouse
    try:
        _fill(folder, plan, record)
    except OSError as error:
        return f"{folder} cannot be written ({error.strerror}); the distributions are in {record.folder}"
    return ""


def _fill(folder: Path, plan: Plan, record: Record) -> None:
    entries = [record.jobs[name] for name in plan.uploaded if name in record.jobs]
    made = [record.folder / path for entry in entries for path in entry["outputs"]]
    names = {file.name for file in made}
    hide_from_git(folder)
    for old in folder.glob(f"{plan.project.normalised}-*"):
        if old.name.endswith(KINDS) and old.name not in names:
            old.unlink()
    for file in made:
        if file.exists():
            new = folder / f".{file.name}"  # nobody sees half a wheel
            shutil.copyfile(file, new)
            new.replace(folder / file.name)

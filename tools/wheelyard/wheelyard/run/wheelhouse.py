"""Fills wheelhouse/ with the distributions of a release and nothing else, so that `twine check wheelhouse/*` works."""

import shutil
from contextlib import suppress
from pathlib import Path

from wheelyard.core.record import Record
from wheelyard.plan.plan import Plan

KINDS = (".whl", ".tar.gz")


def hide_from_git(folder: Path) -> None:
    """Makes a folder that ignores itself, so that no project has to; an existing one is left alone. An error is
    ignored, as whatever writes into the folder next reports it."""
    with suppress(OSError):
        if not folder.exists():
            folder.mkdir(parents=True)
            (folder / ".gitignore").write_text("*\n")


def fill(plan: Plan, record: Record) -> str:
    """Copies the files that an index accepts of this release, and removes the project's other distributions. Returns
    why it could not, or an empty string."""
    folder = plan.project.wheelhouse
    entries = [record.jobs[name] for name in plan.uploaded if name in record.jobs]
    made = [record.folder / path for entry in entries for path in entry["outputs"]]
    names = {file.name for file in made}
    try:
        hide_from_git(folder)
        for old in folder.glob(f"{plan.project.normalised}-*"):
            if old.name.endswith(KINDS) and old.name not in names:
                old.unlink()
        for file in filter(Path.exists, made):
            new = folder / f".{file.name}"  # so that nobody sees half a wheel
            shutil.copyfile(file, new)
            new.replace(folder / file.name)
    except OSError as error:
        return f"{folder} cannot be written ({error.strerror}); the distributions are in {record.folder}"
    return ""

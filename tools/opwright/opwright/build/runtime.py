"""Copies opwright's Python part into an extension's package, so that it depends on torch alone."""

import shutil
from pathlib import Path

RUNTIME = "_opwright"  # in the extension's package; not tracked
SOURCE = Path(__file__).resolve().parents[1] / "runtime"


def copy_runtime(package: Path) -> None:
    """Brings <package>/_opwright up to date; files that are already correct stay untouched."""
    target = package / RUNTIME
    target.mkdir(parents=True, exist_ok=True)
    wanted = {file.name: file for file in SOURCE.glob("*.py")}
    for file in target.glob("*.py"):
        if file.name not in wanted:
            file.unlink()
    for name, file in wanted.items():
        if not (target / name).is_file() or (target / name).read_bytes() != file.read_bytes():
            shutil.copyfile(file, target / name)

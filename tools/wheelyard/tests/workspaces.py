"""A workspace for one job, as a runner makes it: for tests of a step's `run`."""

from pathlib import Path
from typing import Any

from wheelyard.core.digest import sha256
from wheelyard.core.engine import Engine
from wheelyard.core.workspace import Workspace


class NoEngine:
    """A machine without containers."""

    def engine(self) -> Engine:
        raise AssertionError("no container is needed here")

    def say(self, text: str) -> None:
        print(text)


def workspace(folder: Path, made: dict[str, list[Path]], **inputs: Any) -> Workspace:
    """One whose inputs are files that other jobs made, and values."""
    files = {
        name: {str(f.relative_to(folder)): sha256(f) for f in some} for name, some in made.items()
    }
    own = folder / "job"
    own.mkdir(parents=True, exist_ok=True)
    return Workspace({**files, **inputs}, own, own / "log", folder, folder, folder, NoEngine())

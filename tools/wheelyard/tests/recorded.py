"""Provides a job's surroundings: other jobs in the record, as if they had run; a workspace, as a runner makes it; and
evidence, as the smoke test writes it on a GPU machine."""

import shutil
import tempfile
from pathlib import Path
from typing import Any

from wheelyard.core.digest import sha256
from wheelyard.core.engine import Engine
from wheelyard.core.job import Job, Needs
from wheelyard.core.record import Record
from wheelyard.core.workspace import Workspace
from wheelyard.steps.smoke import PROGRAM
from wheelyard.tools import evidence

WHEEL = "demo_ext-1.0-py3-none-any.whl"


def job(name: str, inputs: dict[str, Any] | None = None, outputs: tuple[str, ...] = ()) -> Job:
    step, _, unit = name.partition("/")
    return Job(step, unit, Needs(), inputs or {}, outputs)


def passed(record: Record, name: str, *files: Path, inputs: dict[str, Any] | None = None) -> None:
    """Records that the job passed and left copies of these files at the top of the release folder."""
    made = job(name, inputs, tuple(file.name for file in files))
    with tempfile.TemporaryDirectory(dir=record.folder.parent) as folder:
        for file in files:
            shutil.copy(file, folder)
        record.passed(made, record.resolve(made), Path(folder), {}, 2.0)


def failed(record: Record, name: str, error: str) -> None:
    record.failed(job(name), {}, error, 3.0)


class NoEngine:
    """A machine without containers."""

    def engine(self) -> Engine:
        raise AssertionError("no container is needed here")

    def say(self, text: str) -> None:
        print(text)


def workspace(folder: Path, made: dict[str, list[Path]], **inputs: Any) -> Workspace:
    """Returns a workspace whose inputs are files that other jobs made, and values."""
    files = {
        name: {str(f.relative_to(folder)): sha256(f) for f in some} for name, some in made.items()
    }
    own = folder / "job"
    own.mkdir(parents=True, exist_ok=True)
    return Workspace({**files, **inputs}, own, own / "log", folder, folder, folder, NoEngine())


def proof(**changes: Any) -> dict[str, Any]:
    """Returns evidence that counts for the wheel with sha256 "abc", with these changes."""
    seen = {
        "schema_version": evidence.SCHEMA,
        "wheel": WHEEL,
        "sha256": "abc",
        "machine": "x86_64",
        "python": "3.12.3",
        "torch": "2.11.0",
        "torch_cuda": "13.0",
        "gpu": {"name": "NVIDIA H200", "capability": "9.0", "driver": "580"},
        "program": sha256(PROGRAM),
        "spec": "a spec",
        "command": None,
        "checks": {"add float32 cpu shapes": 5, "add float32 cuda shapes": 5},
        "installed": False,
        "loaded": {"demo_ext/__init__.py": "0" * 64},
        "runs": [{"passed": True, "failures": []}],
        "failures": [],
        "passed": True,
        **changes,
    }
    return {**seen, evidence.SEAL: evidence.seal(seen)}

"""wheelhouse/release.json: what was made from which inputs, every sha256, every verdict.

A task is finished when its record names the same inputs and its outputs are still there. An
output whose bytes changed since is refused: it is not what was built, gated or tested.
"""

import json
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ci.errors import Problem
from ci.project import sha256

Facts = dict[str, Any]


@dataclass
class Result:
    """What a task leaves behind: files below the wheelhouse, and facts for the record."""

    outputs: list[Path] = field(default_factory=list)
    facts: Facts = field(default_factory=dict)


@dataclass(frozen=True)
class Task:
    """One piece of a step. `run` gets the log file; `inputs` are all that the result depends on."""

    step: str
    unit: str
    inputs: Facts
    run: Callable[[Path], Result]

    @property
    def name(self) -> str:
        return f"{self.step}/{self.unit}" if self.unit else self.step


class State:
    """The record of a release, written to disk after every change."""

    def __init__(self, wheelhouse: Path) -> None:
        self.wheelhouse = wheelhouse
        self.file = wheelhouse / "release.json"
        self._lock = threading.Lock()
        self.head: Facts = {"schema_version": 1}
        self.tasks: dict[str, Facts] = {}
        if self.file.exists():
            try:
                content = json.loads(self.file.read_text())
                self.tasks = content.pop("tasks")
                self.head = content
            except (ValueError, KeyError, AttributeError) as error:
                raise Problem(
                    f"{self.file} is damaged ({error}); `make clean-release` starts anew"
                ) from None

    def is_done(self, task: Task) -> bool:
        record = self.tasks.get(task.name)
        if record is None or record["verdict"] != "passed" or record["inputs"] != task.inputs:
            return False
        return not self._missing(task.name)

    def outputs(self, name: str) -> list[Path]:
        """The files a finished task left, each checked to be what was recorded."""
        record = self.tasks.get(name)
        step = name.split("/")[0]
        if record is None or record["verdict"] != "passed":
            raise Problem(f"`{name}` has not passed yet; run `python -m ci {step}` first")
        if missing := self._missing(name):
            raise Problem(
                f"{', '.join(missing)} of {name} is missing; run `python -m ci {step}` again, "
                "or have the job that made it hand it on"
            )
        return [self.wheelhouse / relative for relative in record["outputs"]]

    def _missing(self, name: str) -> list[str]:
        """The files of a task that are gone; one that was altered is refused."""
        missing = []
        for relative, recorded in self.tasks[name]["outputs"].items():
            path = self.wheelhouse / relative
            if not path.exists():
                missing.append(path.name)
            elif (now := sha256(path)) != recorded:
                raise Problem(
                    f"{path.name} was altered after {name}: its sha256 is {now[:16]}..., "
                    f"recorded was {recorded[:16]}...\nNothing goes on with it: delete {path}, "
                    "then run again to make it anew."
                )
        return missing

    def passed(self, task: Task, result: Result, seconds: float) -> None:
        outputs = {str(p.relative_to(self.wheelhouse)): sha256(p) for p in result.outputs}
        for stale in self.tasks.get(task.name, {}).get("outputs", {}).keys() - outputs.keys():
            (self.wheelhouse / stale).unlink(missing_ok=True)
        self._record(task, "passed", seconds, outputs=outputs, facts=result.facts)

    def failed(self, task: Task, error: str, seconds: float) -> None:
        self._record(task, "failed", seconds, outputs={}, facts={"error": error})

    def forget_others(self, step: str, names: set[str]) -> None:
        """Drops the records of a step's tasks that the plan no longer has."""
        known = {name for name in self.tasks if name.split("/")[0] == step}
        for name in known - names:
            del self.tasks[name]
        if known - names:
            self.write()

    def _record(self, task: Task, verdict: str, seconds: float, **more: Facts) -> None:
        self.tasks[task.name] = {
            "verdict": verdict,
            "seconds": round(seconds, 1),
            "inputs": task.inputs,
            **more,
        }
        self.write()

    def write(self) -> None:
        """Atomic: whoever reads it, also after a kill, sees the old or the new record."""
        with self._lock:
            self.wheelhouse.mkdir(parents=True, exist_ok=True)
            temporary = self.file.with_suffix(".json.new")
            with temporary.open("w") as stream:
                json.dump({**self.head, "tasks": self.tasks}, stream, indent=2, sort_keys=True)
                stream.flush()
                os.fsync(stream.fileno())
            temporary.replace(self.file)

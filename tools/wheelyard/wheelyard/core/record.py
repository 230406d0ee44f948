"""Keeps build/release/release.json: what was made from which inputs, every sha256, every verdict.

A job is finished when its record names the same inputs and its outputs still exist. An output whose bytes have changed
since is refused: it is not what was built, gated or tested. A job's own account of its outputs does not count: the
record looks at the files that the job left, accepts only those that the job declares, and hashes them itself.

Jobs that other machines did and handed on are kept in taken.json beside it. So release.json contains only jobs done
here, which are all that this machine can hand on.
"""

import itertools
import json
import os
import re
import shutil
import threading
from collections.abc import Collection, Iterable
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any

from wheelyard.core import digest
from wheelyard.core.digest import sha256
from wheelyard.core.disk import flush
from wheelyard.core.job import Graph, Job, Made, Passed, Source
from wheelyard.problem import Problem

Facts = dict[str, Any]
NAME = re.compile(r"[\w.+!-]{1,255}", re.ASCII)  # of a file or folder that a job leaves


class Record:
    """The record of a release, written to disk after every change."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file, self._taken_file = folder / "release.json", folder / "taken.json"
        self._lock = threading.Lock()
        self._lines: dict[str, tuple[Facts, str]] = {}  # entries, and their JSON
        self.head: Facts = {"schema_version": 2}
        self.jobs: dict[str, Facts] = {}
        self.taken: set[str] = set()  # jobs that other machines did
        if self._taken_file.exists():
            self.head, self.jobs = load(self._taken_file)
            self.taken = set(self.jobs)
        if self.file.exists():
            self.head, own = load(self.file)
            self.jobs |= own
            self.taken -= own.keys()

    # --- What is known ---------------------------------------------------------------------------

    def resolve(self, job: Job) -> Facts:
        """Returns a job's inputs with digests in place of references. Every job that they refer to must have passed."""
        return {name: self._value(value) for name, value in job.inputs.items()}

    def _value(self, value: Any) -> Any:
        if isinstance(value, Made):
            return {p: d for job in value.jobs for p, d in self.outputs(job).items()}
        if isinstance(value, Passed):
            return {job: digest.of(self._passed(job)["inputs"]) for job in value.jobs}
        return dict(value.files) if isinstance(value, Source) else value

    def is_done(self, job: Job) -> bool:
        """Whether the job has passed with exactly the inputs that it has now, and its outputs still exist."""
        entry = self.jobs.get(job.name)
        if entry is None or entry["verdict"] != "passed" or self._missing(job.name):
            return False
        try:
            return bool(entry["inputs"] == self.resolve(job))
        except Problem:
            return False

    def check_ready(self, job: Job, graph: Graph) -> None:
        """Checks that everything a job waits for has passed on the files as they are now."""
        for name in job.after:
            entry = self._passed(name)
            earlier = graph.jobs[name]
            check_outputs(earlier, entry["outputs"])
            for key, value in earlier.inputs.items():
                if not isinstance(value, Made):
                    continue
                now = {p: d for job in value.jobs for p, d in self._passed(job)["outputs"].items()}
                if entry["inputs"].get(key) != now:
                    files = ", ".join(PurePosixPath(path).name for path in now)
                    raise Problem(
                        f"{files} is not the file that passed `{name}`; run `wheelyard release`, which "
                        "repeats what is needed"
                    )
            self.check_ready(earlier, graph)

    def outputs(self, name: str) -> dict[str, str]:
        """Returns the files that a job left, as path below the release folder and sha256. Each must exist unaltered."""
        entry = self._passed(name)
        if missing := self._missing(name):
            step = name.split("/")[0]
            raise Problem(
                f"{', '.join(missing)} of {name} is missing; run `wheelyard {step}` again, "
                "or let the job that made it upload it again"
            )
        return dict(entry["outputs"])

    def files(self, *names: str) -> list[Path]:
        return [self.folder / path for name in names for path in self.outputs(name)]

    def _passed(self, name: str) -> Facts:
        entry = self.jobs.get(name)
        if entry is None or entry["verdict"] != "passed":
            step = name.split("/")[0]
            what = "failed" if entry else "has not passed yet"
            raise Problem(f"`{name}` {what}; run `wheelyard {step}` first")
        return entry

    def _missing(self, name: str) -> list[str]:
        """Returns the names of a job's files that are gone; raises if one was altered."""
        missing = []
        for relative, recorded in self.jobs[name]["outputs"].items():
            path = self.folder / relative
            if not path.exists():
                missing.append(path.name)
            elif (now := sha256(path)) != recorded:
                raise Problem(
                    f"{path.name} was altered after {name}: its sha256 is {now[:16]}..., "
                    f"recorded was {recorded[:16]}...\nIt is not used: delete {path}, "
                    "then run again to make a new one."
                )
        return missing

    # --- What happens ----------------------------------------------------------------------------

    def passed(self, job: Job, inputs: Facts, made_in: Path, facts: Facts, seconds: float) -> None:
        """Moves a job's files from its own folder into the release folder, and records them."""
        outputs = {path: sha256(made_in / path) for path in acceptable(job, made_in)}
        before = self._forget(job.name, outputs)
        for path in outputs:
            target = self.folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            flush(made_in / path)
            (made_in / path).replace(target)
        for stale in before.keys() - outputs.keys():
            others = (e for name, e in self.jobs.items() if name != job.name)
            if not any(stale in entry["outputs"] for entry in others):
                (self.folder / stale).unlink(missing_ok=True)
        self._enter(job.name, "passed", seconds, inputs=inputs, outputs=outputs, facts=facts)

    def _forget(self, name: str, outputs: dict[str, str]) -> dict[str, str]:
        """Drops the record of files that are about to be replaced, and returns them. Otherwise, after a kill between
        the two, they would seem to have been altered."""
        with self._lock:
            before: dict[str, str] = self.jobs.get(name, {}).get("outputs", {})
            is_gone = before not in ({}, outputs)
            if is_gone:
                del self.jobs[name]
        if is_gone:
            self.write()
        return before

    def failed(self, job: Job, inputs: Facts, error: str, seconds: float) -> None:
        self._enter(job.name, "failed", seconds, inputs=inputs, outputs={}, facts={"error": error})

    def take(self, name: str, entry: Facts, folder: Path, job: Job) -> None:
        """Takes over a record from another machine, with the files that came with it in `folder`."""
        if entry["verdict"] == "passed":
            check_outputs(job, entry["outputs"])
        for relative, recorded in entry["outputs"].items():
            check_path(job, relative)
            source = folder / relative
            if not source.is_file():  # a job that needs it will report it
                continue
            if sha256(source) != recorded:
                raise Problem(
                    f"{source.name} from {folder.name} is not what its record says; run that job again: "
                    "the file was altered, or cut off on its way"
                )
            target = self.folder / relative
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
        with self._lock:
            self.jobs[name] = entry
            self.taken.add(name)

    def keep_only(self, names: Iterable[str]) -> None:
        """Drops the records of jobs that the plan no longer has, within the steps that it has."""
        wanted = set(names)
        steps = {name.split("/")[0] for name in wanted}
        gone = [n for n in self.jobs if n not in wanted and n.split("/")[0] in steps]
        for name in gone:
            del self.jobs[name]
        if gone:
            self.write()

    def _enter(self, name: str, verdict: str, seconds: float, **more: Facts) -> None:
        with self._lock:
            self.jobs[name] = {"verdict": verdict, "seconds": round(seconds, 1), **more}
            self.taken.discard(name)
        self.write()

    def write(self) -> None:
        """Writes the record atomically: every reader, even after a kill, sees the old or the new one."""
        with self._lock:
            self.folder.mkdir(parents=True, exist_ok=True)
            if self.taken or self._taken_file.exists():
                _write(self._taken_file, self._text(self.jobs.keys() & self.taken))
            _write(self.file, self._text(self.jobs.keys() - self.taken))

    def write_whole(self, file: Path) -> Path:
        """Writes everything that is known into `file`, including what other machines did."""
        with self._lock:
            text = self._text(self.jobs)
        _write(file, text)
        return file

    def _text(self, names: Iterable[str]) -> str:
        """Returns the JSON of these jobs, one line each; the lines of unchanged jobs are reused."""
        lines = ",\n".join(self._line(name) for name in sorted(names))
        beginning = json.dumps(self.head, sort_keys=True).removesuffix("}")
        return f'{beginning}, "jobs": {{\n{lines}\n}}}}\n'

    def _line(self, name: str) -> str:
        entry, line = self._lines.get(name, (None, ""))
        if entry is not self.jobs[name]:
            entry = self.jobs[name]
            line = f"{json.dumps(name)}: {json.dumps(entry, sort_keys=True)}"
            self._lines[name] = entry, line
        return line


def load(file: Path) -> tuple[Facts, dict[str, Facts]]:
    """Returns the head of a record, and its jobs."""
    try:
        head = json.loads(file.read_text())
        jobs = head.pop("jobs")
        if not isinstance(jobs, dict):
            raise TypeError("its jobs are not a table")
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError) as error:
        raise Problem(
            f"{file} is damaged, or from another version ({error}); delete it to start over"
        ) from None
    return head, jobs


def _write(file: Path, text: str) -> None:
    temporary = file.with_suffix(".json.new")
    with temporary.open("w") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    temporary.replace(file)


def acceptable(job: Job, folder: Path) -> list[str]:
    """Returns the files that a job left in the folder. Rejects undeclared outputs, and anything but plain files."""
    found = []
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder).as_posix()
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise Problem(f"{job.name} left {relative}, which is not a plain file")
        if path.is_file():
            found.append(relative)
    check_outputs(job, found)
    return found


def check_outputs(job: Job, paths: Collection[str]) -> None:
    """Checks that a job leaves one file for each of its patterns, or any number for a pattern that starts with `?`, and
    no other file."""
    for path in paths:
        check_path(job, path)
    for pattern in job.outputs:
        fitting = [path for path in paths if _fits(path, pattern)]
        if not pattern.startswith("?") and len(fitting) != 1:
            names = f"{len(fitting)} files" if fitting else "no"
            raise Problem(f"{job.name} made {names} {pattern}")


def check_path(job: Job, relative: str) -> None:
    """Checks that a path lies below the release folder and matches one of the job's patterns."""
    parts = relative.split("/")
    is_plain = all(NAME.fullmatch(part) and part not in (".", "..") for part in parts)
    if not is_plain or not any(_fits(relative, pattern) for pattern in job.outputs):
        raise Problem(f"{job.name} names the file {relative}, which is not its own")


def _fits(path: str, pattern: str) -> bool:
    """Whether a path matches a pattern. A wheel's name may hold several platform tags, and pip installs it for each of
    them, so each must match. A variant's label may follow them."""
    names, pattern = [path], pattern.removeprefix("?")
    if path.endswith(".whl"):
        parts = path.removesuffix(".whl").split("-")
        ends = itertools.product(*(part.split(".") for part in parts[-2:]))
        names = ["-".join([*parts[:-2], *end]) + ".whl" for end in ends]
    is_like_it = all(fnmatchcase(name, pattern) for name in names)
    return path == pattern or (is_like_it and path.count("/") == pattern.count("/"))

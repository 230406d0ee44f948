"""Collects the files and records of other jobs from build/release/handed/.

Runners share no disk. Each uploads its release.json with the files that later jobs need, as an artifact; here they
become one record again. Any job of a run can replace any artifact, so an artifact is not trusted: it may hand on only
the jobs that it is for, each job only its own files, and no other artifact may hand on the same job. The bytes of
released files must be those that the job which made them has told the workflow, in an output that no other job can
change.
"""

import json
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from wheelyard.core import record as records
from wheelyard.core.job import Graph
from wheelyard.core.record import Facts, Record
from wheelyard.problem import Problem

FOLDER = "handed"
MayHandOn = Callable[[str, str], bool]  # (artifact, job) -> whether it may hand the job on
CheckOwners = Callable[[str, Iterable[str]], None]  # raises if a file is not named for that job


@dataclass(frozen=True)
class Told:
    """A job's statement to the workflow: the sha256 of each file that it made or judged."""

    job: str
    files: dict[str, str]  # by name
    is_all: bool = False  # the release has no other file


def told(text: str, *, is_all: bool = False) -> Told:
    """Reads JOB=SHA256 NAME SHA256 NAME ..., as `wheelyard digests` prints it after the job's name."""
    job, _, digests = text.partition("=")
    words = digests.split()
    if not job or len(words) % 2 or any(len(word) != 64 for word in words[::2]):
        raise Problem(
            f"`{text[:80]}` does not say what a job made: JOB=SHA256 NAME SHA256 NAME ..."
        )
    if is_all and not words:
        raise Problem(
            f"{job} gave no digests of the files of this release; does it run `wheelyard digests`?"
        )
    return Told(job, dict(zip(words[1::2], words[::2], strict=True)), is_all)


def digests(record: Record, jobs: Iterable[str]) -> str:
    """Returns the statement for the workflow: the digest and name of each file that these jobs have made so far."""
    made = [record.outputs(job) for job in jobs if job in record.jobs]
    return " ".join(f"{d} {Path(path).name}" for files in made for path, d in files.items())


def join(
    graph: Graph,
    record: Record,
    here: dict[str, str],
    may_hand_on: MayHandOn,
    released: Collection[str],
    words: Collection[Told] = (),
    check_owners: CheckOwners = lambda *_: None,
) -> str:
    """Joins the records, and returns what was done. `here` are the facts of this checkout that a record must share,
    `released` the jobs whose files are released, and `words` the statements about those files. `check_owners` refuses a
    file of another job."""
    handed = record.folder / FOLDER
    _refuse_links(handed)
    found = sorted(handed.glob("*/release.json"))
    if not found:
        raise Problem(
            f"there is no release.json below {handed}; put there what the earlier jobs uploaded, a folder for each"
        )
    by: dict[str, str] = {}  # the artifact that handed on each job
    for file in found:
        artifact = file.parent.name
        for name, entry in _read(file, here).items():
            _check(name, entry, artifact, graph, may_hand_on)
            if name in by:
                raise Problem(
                    f"{artifact} hands on `{name}`, and so does {by[name]}; only one of them can have done it"
                )
            by[name] = artifact
            if name in released:
                _check_bytes(entry, artifact, words)
                check_owners(name, entry["outputs"])
            if record.jobs.get(name, entry)["outputs"] != entry["outputs"]:
                raise Problem(
                    f"{artifact} and this machine have made different files in {name}; builds must be reproducible: "
                    "run both again, and compare the files if that happens again"
                )
            record.take(name, entry, file.parent, graph.jobs[name])
    _check_that_all_came(by.keys() & set(released), record, words)
    record.head |= here
    record.write()
    return f"joined {len(found)} records: {len(record.jobs)} jobs"


def _check_that_all_came(jobs: Iterable[str], record: Record, words: Iterable[Told]) -> None:
    """Checks that the release does not lack a file because the artifact with it was left out."""
    came = {Path(path).name for job in jobs for path in record.jobs[job]["outputs"]}
    for said in words:
        if said.is_all and (missing := sorted(said.files.keys() - came)):
            raise Problem(
                f"{said.job} gave the digests of {', '.join(missing)}, which no artifact has"
            )


def _refuse_links(folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_symlink():
            artifact, *inside = path.relative_to(folder).parts
            raise Problem(
                f"{artifact} holds the link {'/'.join(inside)}; an artifact has plain files only"
            )


def _read(file: Path, here: dict[str, str]) -> dict[str, Facts]:
    head, jobs = records.load(file)
    for key, value in here.items():
        if head.get(key) != value:
            raise Problem(
                f"{file.parent.name} was made for {key} {head.get(key)}, but this tree has {value}; "
                "check out what it was made from, or run that job again"
            )
    return jobs


def _check(name: str, entry: Facts, artifact: str, graph: Graph, may_hand_on: MayHandOn) -> None:
    """Checks an entry's shape, which another machine wrote, and that the artifact may hand it on."""
    kinds = {"verdict": str, "seconds": int | float, "inputs": dict, "outputs": dict, "facts": dict}
    is_whole = isinstance(entry, dict) and all(
        isinstance(entry.get(k), t) for k, t in kinds.items()
    )
    if not is_whole or not all(isinstance(value, str) for value in entry["outputs"].values()):
        raise Problem(f"the record of {name} from {artifact} is damaged: {json.dumps(entry)[:200]}")
    if name not in graph.jobs:
        raise Problem(f"{artifact} hands on `{name}`, which is not a job of this plan")
    if not may_hand_on(artifact, name):
        raise Problem(f"{artifact} hands on `{name}`, which is not its own")


def _check_bytes(entry: Facts, artifact: str, words: Iterable[Told]) -> None:
    for path, digest in entry["outputs"].items():
        name = Path(path).name
        for said in words:
            expected = said.files.get(name)
            if expected is None and said.is_all:
                raise Problem(f"{artifact} hands on {name}, for which {said.job} gave no digest")
            if expected not in (None, digest):
                raise Problem(
                    f"{artifact} hands on {name} with sha256 {digest[:16]}..., but {said.job} has told the workflow "
                    f"{expected[:16]}...\nNothing is taken over: find out which job replaced that artifact."
                )

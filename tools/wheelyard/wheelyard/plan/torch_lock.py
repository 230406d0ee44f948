"""ci/torch.lock: the hashes of each torch that a project builds and tests with, and of all that it needs there.

It is a file as `uv pip compile --generate-hashes` writes it: the block of a torch, then those of what it needs,
then the next torch. One that is never installed with what it needs has no more than its own block.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from wheelyard.problem import Problem

FILE = "ci/torch.lock"
RELEASE = re.compile(r"^torch==(\S+)", re.MULTILINE)

Pins = Mapping[
    str, list[str]
]  # the lines of each release, as pip takes them: its own, then what it needs


def load(root: Path) -> Pins:
    """What is pinned for each torch; empty if the project pins nothing."""
    file = root / FILE
    found: dict[str, list[str]] = {}
    for line in lines_of(file.read_text() if file.is_file() else ""):
        if head := RELEASE.match(line):
            found[head[1]] = [line]
        elif found:
            [*found.values()][-1].append(line)
    return found


def lines_of(lock: str) -> Iterator[str]:
    """A line for each package of a lock."""
    for line in lock.replace("\\\n", " ").splitlines():
        if words := line.split("#")[0].split():
            yield " ".join(words)


def requirements(release: str, pins: Pins, *, alone: bool = False) -> str:
    """A torch, and what it needs unless it is `alone`, as a file of requirements: whoever installs it from there
    refuses other bytes."""
    if pins and release not in pins:
        raise Problem(
            f"{FILE} has no torch {release}, which the matrix names; it has {', '.join(pins)}. "
            "Pin that one too, with `uv pip compile --generate-hashes`, or take the file away"
        )
    lines = pins.get(release, [f"torch=={release}"])
    return "\n".join(lines[:1] if alone else lines)

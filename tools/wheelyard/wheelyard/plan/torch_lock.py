"""Reads ci/torch.lock: the hashes of each torch that a project builds and tests with, and of all that it needs there.

The file is as `uv pip compile --generate-hashes` writes it: the block of a torch, then those of the packages that it
needs, then the next torch. A torch that is only installed without its dependencies has just its own block.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from wheelyard.problem import Problem

FILE = "ci/torch.lock"
RELEASE = re.compile(r"^torch==(\S+)", re.MULTILINE)

# The lines of each release for pip: its own, then those of the packages that it needs.
Pins = Mapping[str, list[str]]


def load(root: Path) -> Pins:
    """Returns the lines that are pinned for each torch; empty if the project pins nothing."""
    file = root / FILE
    found: dict[str, list[str]] = {}
    for line in lines_of(file.read_text() if file.is_file() else ""):
        if head := RELEASE.match(line):
            found[head[1]] = [line]
        elif found:
            [*found.values()][-1].append(line)
    return found


def lines_of(lock: str) -> Iterator[str]:
    """Yields a line for each package of a lock."""
    for line in lock.replace("\\\n", " ").splitlines():
        if words := line.split("#")[0].split():
            yield " ".join(words)


def requirements(release: str, pins: Pins, *, alone: bool = False) -> str:
    """Returns a torch as a requirements file, with its dependencies unless it is `alone`. With hashes, an installer
    refuses other bytes."""
    if pins and release not in pins:
        raise Problem(
            f"{FILE} has no torch {release}, which the matrix names; it has {', '.join(pins)}. "
            "Pin that one too, with `uv pip compile --generate-hashes`, or take the file away"
        )
    lines = pins.get(release, [f"torch=={release}"])
    return "\n".join(lines[:1] if alone else lines)

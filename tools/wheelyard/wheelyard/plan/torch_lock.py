"""ci/torch.lock: the hashes of the files of each torch that a project builds and tests with, where it pins them.

It is a file as `uv pip compile --generate-hashes` writes it, with a block for each release.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from wheelyard.problem import Problem

FILE = "ci/torch.lock"
BLOCK = re.compile(r"^torch==(\S+) \\\n((?:    --hash=.*\n?)+)", re.MULTILINE)

Hashes = Mapping[str, list[str]]  # of each release, as pip takes them: `--hash=sha256:...`


def load(root: Path) -> Hashes:
    """The hashes of each torch; empty if the project pins none."""
    file = root / FILE
    blocks = BLOCK.findall(file.read_text()) if file.is_file() else []
    return {release: re.findall(r"--hash=\S+", text) for release, text in blocks}


def requirement(release: str, hashes: Hashes) -> str:
    """A torch for a file of requirements: whoever installs it from there refuses other bytes."""
    if hashes and release not in hashes:
        raise Problem(
            f"{FILE} has no torch {release}, which the matrix names; it has {', '.join(hashes)}. "
            "Pin that one too, with `uv pip compile --generate-hashes`, or take the file away"
        )
    return " ".join([f"torch=={release}", *hashes.get(release, [])])

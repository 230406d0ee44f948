"""Runs git in a folder, whatever the environment says of other repositories, as in a hook."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from wheelyard.problem import Problem

# The other variables name repositories, or say how to read them.
KEPT = ("GIT_CONFIG_", "GIT_AUTHOR_", "GIT_COMMITTER_")


def run(
    folder: Path, *words: str, more: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Runs git, without replaced objects. Where it is missing, it fails as a shell does that cannot find it."""
    told = {n: v for n, v in os.environ.items() if not n.startswith("GIT_") or n.startswith(KEPT)}
    told |= {"GIT_NO_REPLACE_OBJECTS": "1", "LC_ALL": "C.UTF-8", **(more or {})}
    command = ["git", "-c", "core.fsmonitor=false", *words]
    try:
        return subprocess.run(command, cwd=folder, capture_output=True, env=told)
    except FileNotFoundError:
        return subprocess.CompletedProcess(command, 127, b"", b"git is missing; install it")


def ask(folder: Path, *words: str, more: Mapping[str, str] | None = None) -> str | None:
    """Returns what git prints, or None if it fails."""
    done = run(folder, *words, more=more)
    return os.fsdecode(done.stdout).strip("\n") if done.returncode == 0 else None


def call(folder: Path, *words: str) -> str:
    """Returns what git prints; raises if it fails."""
    done = run(folder, *words)
    if done.returncode != 0:
        said = os.fsdecode(done.stderr.strip() or done.stdout.strip())
        raise Problem(f"git failed: {' '.join(words)}: {said}")
    return os.fsdecode(done.stdout).strip("\n")

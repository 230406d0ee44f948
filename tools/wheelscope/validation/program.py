"""Runs the built wheelscope."""

import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from validation import pypi

ROOT = Path(__file__).resolve().parents[1]
WHEELSCOPE = Path(os.environ.get("WHEELSCOPE", ROOT / "build/bin/wheelscope"))


@functools.cache
def version() -> str:
    """Returns the version of the build, which is not that of the release."""
    return pypi.sha256(WHEELSCOPE)


def ask(*words: str | Path) -> Any:
    """Returns a command's answer as JSON; it may have findings."""
    done = subprocess.run(
        [WHEELSCOPE, words[0], "--json", *words[1:]], capture_output=True, text=True
    )
    if done.returncode not in (0, 1):
        sys.exit(f"error: {' '.join(map(str, words))} ended with {done.returncode}: {done.stderr}")
    return json.loads(done.stdout)

"""Runs the built wheelscope for the tests."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PROGRAM = Path(
    os.environ.get("WHEELSCOPE", ROOT / "build/bin/wheelscope")
)  # or one that counts its lines
QUESTIONS = ROOT / "build/wheelscope/wheelscope_questions"

Scope = Callable[..., Any]
Ask = Callable[..., Any]
Fit = Callable[..., Any]


def run_json(command: str, *arguments: str | Path, code: int | None = 0) -> Any:
    """A command's parsed --json output; it must end with `code` (None: 0 or 1)."""
    words = [PROGRAM, command, "--json", *arguments]
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    assert done.returncode in ((0, 1) if code is None else (code,)), done.stderr or done.stdout
    return json.loads(done.stdout)

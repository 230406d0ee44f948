"""Runs the built wheelscope, and describes machines to it."""

import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from packaging.tags import Tag, compatible_tags, cpython_tags

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


def tags_of(python: str, platforms: list[str]) -> list[Tag]:
    """Returns the tags that pip takes with a CPython such as 3.13.1 or 3.13t."""
    major, minor = python.rstrip("t").split(".")[:2]
    number, interpreter = (int(major), int(minor)), f"cp{major}{minor}"
    own = cpython_tags(number, [interpreter + "t" * python.endswith("t")], platforms)
    return [*own, *compatible_tags(number, interpreter, platforms)]


def python(version: str, platforms: list[str]) -> dict[str, Any]:
    """Returns a CPython in an environment of its own, which takes wheels for these platforms."""
    minor = version.split(".")[:2]
    return {
        "executable": "/opt/env/bin/python",
        "version": version,
        "abi": "cp" + "".join(minor),
        "prefix": "/opt/env",
        "base_prefix": "/usr",
        "architecture": "x86_64",
        "site_packages": [f"/opt/env/lib/python{'.'.join(minor)}/site-packages"],
        "tags": [str(tag) for tag in tags_of(version, platforms)],
    }


def machine(**facts: Any) -> dict[str, Any]:
    """Returns a machine without Python, torch or GPU, but with these facts, as `wheelscope machine
    --json` would save it."""
    nothing: dict[str, Any] = dict.fromkeys(("driver", "python", "torch"))
    lists: dict[str, Any] = {"gpus": [], "cuda_libraries": [], "notes": []}
    system = {"architecture": "x86_64", "libc": "glibc", "libc_version": "2.35"}
    torch = {"path": "/nonexistent/torch", "cuda": None, "rocm": None, "cxx11_abi": True}
    found = {**system, **nothing, **lists, **facts}
    found["torch"] = torch | found["torch"] if found["torch"] else None
    return {"schema_version": 2, "machine": found}

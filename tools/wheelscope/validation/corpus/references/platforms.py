"""auditwheel, as the reference for the platform tag that the symbol versions allow."""

import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from validation.corpus.reference import Facts, Reference

NOWHERE = "/nowhere"


def ask(wheel: Path, tree: Path) -> Facts:  # noqa: ARG001 (it unpacks the wheel itself)
    """The tag for the symbol versions; `any` for wheels without ELF files.

    With no path to search: else it adds the needs of whatever library this machine happens to have
    under a name that the wheel needs.
    """
    show = [sys.executable, "-m", "auditwheel", "show", "--json", "--ldpaths", NOWHERE, str(wheel)]
    done = subprocess.run(show, capture_output=True, text=True)
    try:
        tag = str(json.loads(done.stdout).get("sym_tag", "any"))
    except json.JSONDecodeError:
        tag = "no answer: " + (done.stderr.strip().splitlines() or ["nothing"])[-1]
    return {"": {"platform_tag": tag}}


def ours(item: Any, wheel: Path, theirs: Facts) -> Facts:  # noqa: ARG001
    return {"": {"platform_tag": item["platform_tag"]}}


AUDITWHEEL = Reference("auditwheel", lambda: version("auditwheel"), ask, ours)

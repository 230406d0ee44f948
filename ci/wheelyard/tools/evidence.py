"""What is known of a wheel from running it on a GPU machine.

That machine is another job, which hands its evidence on, or one that a person used; that evidence is committed in
docs/evidence. Evidence counts for the very bytes that it names, and only if something was checked on a GPU.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

FOLDER = "docs/evidence"


def on_gpu(wheel_digest: str, files: Iterable[Path]) -> list[dict[str, Any]]:
    """The evidence that the wheel with this sha256 passed on a GPU, each once."""
    found: dict[str, dict[str, Any]] = {}
    for file in sorted(files):
        try:
            evidence = json.loads(file.read_text())
        except ValueError:  # an empty file that a full disk left is no evidence
            continue
        if (
            isinstance(evidence, dict)
            and _counts(evidence)
            and evidence.get("sha256") == wheel_digest
        ):
            found[json.dumps(evidence, sort_keys=True)] = {"file": file.name, **evidence}
    return list(found.values())


def _counts(evidence: dict[str, Any]) -> bool:
    """It passed on a GPU, and something was checked."""
    return bool(evidence.get("gpu") and evidence.get("passed") and checks(evidence))


def checks(evidence: dict[str, Any]) -> int:
    """How many checks passed; a command that succeeded is one."""
    seen = evidence.get("checks") or 0
    return (sum(seen.values()) if isinstance(seen, dict) else int(seen)) + bool(
        evidence.get("command")
    )

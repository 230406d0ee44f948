"""Asks the reference tools about wheels of the corpus. That takes minutes, so answers are kept.

They are beside the wheel (*.answers.json), each with the version of its tool. Delete them after
changing a module of references/.
"""

import json
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from validation.corpus.reference import Facts
from validation.corpus.references.claims import EMAIL, PACKAGING
from validation.corpus.references.device_code import CUOBJDUMP_ALL
from validation.corpus.references.installation import INSTALLATION
from validation.corpus.references.loader import GLIBC
from validation.corpus.references.platforms import AUDITWHEEL
from validation.corpus.references.torch_abi import TORCH_ABI_AUDIT

REFERENCES = (EMAIL, PACKAGING, INSTALLATION, AUDITWHEEL, CUOBJDUMP_ALL, TORCH_ABI_AUDIT, GLIBC)


def answers(wheel: Path) -> dict[str, Facts]:
    """Returns each reference's facts; kept ones if the tool's version is the same."""
    file = wheel.with_suffix(".answers.json")
    kept: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    stale = [
        tool for tool in REFERENCES if kept.get(tool.name, {}).get("version") != tool.version()
    ]
    if stale:
        with tempfile.TemporaryDirectory(dir=wheel.parent) as name:
            tree = Path(name)
            with zipfile.ZipFile(wheel) as members:
                members.extractall(tree)
            for tool in stale:
                kept[tool.name] = {"version": tool.version(), "facts": tool.ask(wheel, tree)}
        file.write_text(json.dumps(kept, indent=1) + "\n")
    return {tool.name: kept[tool.name]["facts"] for tool in REFERENCES}

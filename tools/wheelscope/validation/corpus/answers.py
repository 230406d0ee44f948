"""Asks the reference tools about wheels of the corpus; that takes minutes, so answers are kept.

They lie beside the wheel, each with the version of the tool that gave it.
"""

import argparse
import json
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from validation.corpus.download import read_list
from validation.corpus.reference import Facts, Reference
from validation.corpus.references.device_code import CUOBJDUMP_ALL
from validation.corpus.references.installation import INSTALLATION
from validation.corpus.references.loader import GLIBC
from validation.corpus.references.metadata import EMAIL
from validation.corpus.references.names import PACKAGING
from validation.corpus.references.platforms import AUDITWHEEL
from validation.corpus.references.torch_abi import TORCH_ABI_AUDIT

REFERENCES = (EMAIL, PACKAGING, INSTALLATION, AUDITWHEEL, CUOBJDUMP_ALL, TORCH_ABI_AUDIT, GLIBC)


def kept_answers(wheel: Path) -> dict[str, Any]:
    file = wheel.with_suffix(".answers.json")
    kept: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    return kept


def answers(wheel: Path) -> dict[str, Facts]:
    """Each reference's facts, from the kept ones where the tool's version is the same."""
    kept = kept_answers(wheel)
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
        wheel.with_suffix(".answers.json").write_text(json.dumps(kept, indent=1) + "\n")
    return {tool.name: kept[tool.name]["facts"] for tool in REFERENCES}


def forget(wheel: Path, tool: Reference) -> None:
    """Lets a reference be asked again, after its module has changed."""
    kept = kept_answers(wheel)
    kept.pop(tool.name, None)
    wheel.with_suffix(".answers.json").write_text(json.dumps(kept, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("build/corpus"))
    parser.add_argument("--again", help="the reference that is asked again", default="")
    options = parser.parse_args()
    wheels = [options.folder / listed.file_name for listed in read_list()]
    for number, wheel in enumerate(sorted(wheels, key=lambda file: file.stat().st_size), 1):
        for tool in REFERENCES:
            if tool.name == options.again:
                forget(wheel, tool)
        answers(wheel)
        print(f"[{number}/{len(wheels)}] {wheel.name}", flush=True)


if __name__ == "__main__":
    main()

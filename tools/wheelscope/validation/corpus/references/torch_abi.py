"""torch-abi-audit, as the reference for which torch a wheel needs."""

import json
import mmap
import subprocess
import sysconfig
from importlib.metadata import version
from pathlib import Path
from typing import Any

from validation.corpus.reference import Facts, Reference, elf_files
from validation.tables import by_version


def mentions_torch(file: Path) -> bool:
    """True if a name of torch's may be among its symbols: the tool is slow, and few wheels have
    one."""
    with file.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return any(data.find(word) >= 0 for word in (b"torch", b"c10", b"N2at"))


def ask(wheel: Path, tree: Path) -> Facts:  # noqa: ARG001 (the unpacked files are enough)
    if not any(map(mentions_torch, elf_files(tree))):
        return {"": {"torch_abi": "none", "torch_min": None}}
    audit = Path(sysconfig.get_path("scripts")) / "torch-abi-audit"
    command = [str(audit), "--site-packages", str(tree), "--json", "--all"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return {"": {"torch_abi": "no answer: " + done.stderr.strip(), "torch_min": None}}
    found = [
        library["torch"]
        for package in json.loads(done.stdout)["packages"]
        for kind in ("extensions", "bundled_libs")
        for library in package[kind]
        if library["torch"]["uses_torch"]
    ]
    if not found:
        kind, oldest = "none", None
    elif any(library["unstable_symbols"] for library in found):
        kind, oldest = "cxx", None
    else:
        newest = max((library["min_torch_version"] for library in found), key=by_version)
        kind, oldest = "stable", newest.removesuffix(".0")
    return {"": {"torch_abi": kind, "torch_min": oldest}}


def ours(item: Any, wheel: Path, theirs: Facts) -> Facts:  # noqa: ARG001
    torch = item["torch_abi"]
    return {"": {"torch_abi": torch["kind"], "torch_min": torch["min"]}}


TORCH_ABI_AUDIT = Reference("torch-abi-audit", lambda: version("torch-abi-audit"), ask, ours)

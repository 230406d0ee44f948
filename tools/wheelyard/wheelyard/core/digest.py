"""Computes digests of everything that a job's result depends on: files, its step's code, the versions of its tools."""

import ast
import functools
import hashlib
import importlib.metadata
import json
import platform
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

# The versions that pack wheels and sdists: another zlib, such as zlib-ng, writes other bytes for the same files.
COMPRESSOR = {"python": platform.python_version(), "zlib": zlib.ZLIB_RUNTIME_VERSION}
LINK, EXECUTABLE = "link to ", " executable"
PACKAGE = Path(__file__).resolve().parent.parent
# What these modules give to a step is data, which is already in its jobs' inputs.
DATA = ("config", "plan", "problem")


def sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def of_source(file: Path) -> str:
    """Describes a project's file for an input: its sha256 and whether it is executable, or the target of a link."""
    if file.is_symlink():
        return f"{LINK}{file.readlink()}"
    return sha256(file) + (EXECUTABLE if file.stat().st_mode & 0o100 else "")


def of(value: Any) -> str:
    """Returns the digest of a JSON value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def tools(*names: str) -> dict[str, str | None]:
    """Returns the version of each Python package that a step runs as a program, or None if it is not installed: the
    jobs that publish install few packages, but plan all jobs."""
    installed = importlib.metadata.distributions
    return {name: next((d.version for d in installed(name=name)), None) for name in names}


@functools.cache
def code(module: str) -> str:
    """Returns the digest of the code that a step runs: its module and, recursively, every module of ours that it
    imports."""
    seen: dict[str, str] = {}
    _collect(module, seen)
    return of(seen)


@functools.cache
def package() -> str:
    """Returns the digest of this program's whole code and recipes. Machines with equal digests give equal results."""
    files = [*PACKAGE.rglob("*.py"), *(PACKAGE / "docker").rglob("*")]
    found = {file.relative_to(PACKAGE).as_posix(): sha256(file) for file in files if file.is_file()}
    return of({name: value for name, value in found.items() if "__pycache__" not in name})


def _collect(module: str, seen: dict[str, str]) -> None:
    file = _file(module)
    if file is None or module in seen or module.split(".")[1] in DATA:
        return
    seen[module] = sha256(file)
    for name in _imports(ast.parse(file.read_text())):
        _collect(name, seen)


def _file(module: str) -> Path | None:
    first, *rest = module.split(".")
    if first != PACKAGE.name or not rest:
        return None
    plain = PACKAGE.joinpath(*rest).with_suffix(".py")
    return plain if plain.is_file() else None


def _imports(tree: ast.Module) -> Iterable[str]:
    """Yields the modules that a module imports when it runs; imports only for type checkers do not count."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            node.body = []
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)

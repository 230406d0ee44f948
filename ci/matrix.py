"""Reads ci/matrix.toml into typed facts; an unknown, missing or mistyped key names its line."""

import dataclasses
import re
import tomllib
import types
import typing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ci.errors import Problem

FILE = Path(__file__).with_name("matrix.toml")


@dataclass(frozen=True)
class Extension:
    stable_abi: str


@dataclass(frozen=True)
class Arch:
    debian: str
    runner: str


@dataclass(frozen=True)
class Pythons:
    versions: list[str]
    debian: dict[str, str]


@dataclass(frozen=True)
class Torch:
    release: str
    pythons: list[str]
    cuda: list[str]
    pypi: dict[str, str]


@dataclass(frozen=True)
class Toolkit:
    compiler: str
    targets: list[str]


@dataclass(frozen=True)
class Universal:
    toolkit: str


@dataclass(frozen=True)
class Each:
    toolkits: list[str]


@dataclass(frozen=True)
class Strategy:
    default: str
    universal: Universal
    each: Each


@dataclass(frozen=True)
class Build:
    python: str
    source_date_epoch: int
    environment: dict[str, str]
    environment_cpu: dict[str, str]


@dataclass(frozen=True)
class PypaBase:
    image: str


@dataclass(frozen=True)
class DebianBase:
    suite: str


@dataclass(frozen=True)
class Bases:
    pypa: PypaBase
    debian: DebianBase


@dataclass(frozen=True)
class RunCell:
    torch: str
    python: str


@dataclass(frozen=True)
class Verify:
    run: list[RunCell]


@dataclass(frozen=True)
class Publish:
    gpu_evidence: list[str]


@dataclass(frozen=True)
class Op:
    op: str
    args: list[str]
    reference: str


@dataclass(frozen=True)
class Timing:
    op: str
    dtype: str
    elements: int


@dataclass(frozen=True)
class Smoke:
    ops: list[Op]
    dtypes: list[str]
    timing: Timing


@dataclass(frozen=True)
class Matrix:
    extension: Extension
    arch: dict[str, Arch]
    python: Pythons
    torch: dict[str, Torch]
    toolkit: dict[str, Toolkit]
    strategy: Strategy
    build: Build
    base: Bases
    verify: Verify
    publish: Publish
    smoke: Smoke


def load(file: Path = FILE) -> Matrix:
    """The matrix in `file`, every key and cross-reference checked."""
    try:
        text = file.read_text()
        tables = tomllib.loads(text)
    except FileNotFoundError:
        raise Problem(f"{file} is missing; restore it with `git checkout {file.name}`") from None
    except tomllib.TOMLDecodeError as error:
        raise Problem(f"{file.name} is not valid TOML: {error}") from None
    matrix: Matrix = _read(Matrix, tables, [], _Source(file.name, text))
    _check_references(matrix, _Source(file.name, text))
    return matrix


@dataclass(frozen=True)
class _Source:
    """The file's text, to say on which line a key stands."""

    name: str
    text: str

    def problem(self, path: list[str], what: str) -> Problem:
        return Problem(f"{self.name}:{self.line(path)}: {what}")

    def line(self, path: list[str]) -> int:
        """The line of the last key of `path` that is written down, searched below its parents."""
        lines = self.text.splitlines()
        found, start = 1, 0
        for key in path:
            pattern = re.compile(rf"""(^|[\[{{,.\s])["']?{re.escape(key)}["']?\s*([=.\]])""")
            for number in range(start, len(lines)):
                if pattern.search(lines[number].split("#")[0]):
                    found, start = number + 1, number
                    break
        return found


def _read(kind: Any, value: Any, path: list[str], source: _Source) -> Any:
    """`value` as `kind` (dataclass, dict, list, str, int); raises with the line of the bad key."""
    place = ".".join(path) or "the file"
    origin = typing.get_origin(kind)
    if dataclasses.is_dataclass(kind):
        if not isinstance(value, dict):
            raise source.problem(path, f"{place} must be a table")
        hints = typing.get_type_hints(kind)
        for key in value.keys() - hints.keys():
            known = ", ".join(sorted(hints))
            raise source.problem([*path, key], f"unknown key `{key}` in {place}; it takes: {known}")
        for key in hints.keys() - value.keys():
            raise source.problem(path, f"{place} lacks the key `{key}`")
        make = typing.cast(types.FunctionType, kind)
        return make(**{k: _read(hints[k], v, [*path, k], source) for k, v in value.items()})
    plain = origin or kind
    if not isinstance(value, plain) or isinstance(value, bool):
        raise source.problem(path, f"{place} must be a {plain.__name__}, not {value!r}")
    if origin is list:
        (item,) = typing.get_args(kind)
        return [_read(item, v, path, source) for v in value]
    if origin is dict:
        _, item = typing.get_args(kind)
        return {k: _read(item, v, [*path, k], source) for k, v in value.items()}
    return value


def _check_references(matrix: Matrix, source: _Source) -> None:
    """Names used in one table must exist in the other."""

    def need(name: str, names: typing.Collection[str], *path: str) -> None:
        if name not in names:
            raise source.problem(
                list(path), f"{'.'.join(path)} names `{name}`; known: {', '.join(names)}"
            )

    need(matrix.extension.stable_abi, matrix.torch, "extension", "stable_abi")
    need(matrix.strategy.default, ["universal", "each"], "strategy", "default")
    for toolkit in (matrix.strategy.universal.toolkit, *matrix.strategy.each.toolkits):
        need(toolkit, matrix.toolkit, "strategy")
    need(matrix.build.python, matrix.python.versions, "build", "python")
    need(matrix.build.python, matrix.python.debian, "python", "debian")
    for name, torch in matrix.torch.items():
        for python in torch.pythons:
            need(python, matrix.python.versions, "torch", name, "pythons")
        for arch, cuda in torch.pypi.items():
            need(arch, matrix.arch, "torch", name, "pypi")
            need(cuda, torch.cuda, "torch", name, "pypi")
    for cell in matrix.verify.run:
        need(cell.torch, matrix.torch, "verify", "run")
        need(cell.python, matrix.torch[cell.torch].pythons, "verify", "run")
        need(cell.python, matrix.python.debian, "python", "debian")

"""Reads a TOML file into dataclasses, which are its schema. An error names the file and line and suggests a fix.

A dataclass is a table and a field is a key: `key("what it means", default)`. A key without a default is required. The
same definition gives the JSON schema for editors and the page for people (reference.py).
"""

import dataclasses
import difflib
import re
import tomllib
import types
import typing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wheelyard.problem import Problem

NAMES = {
    str: "a string",
    int: "a whole number",
    bool: "true or false",
    list: "a list",
    dict: "a table",
}


def key(
    doc: str,
    default: Any = dataclasses.MISSING,
    choices: tuple[str, ...] = (),
    *,
    known: bool = False,
) -> Any:
    """Defines a key of a table. Without a default it is required, unless wheelyard knows it by the table's name."""
    metadata = {"doc": doc, "choices": choices, "known": known}
    if isinstance(default, list | dict) or dataclasses.is_dataclass(default):
        return dataclasses.field(default_factory=lambda: default, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


@dataclass(frozen=True)
class Source:
    """The text of the file, used to find the line on which a key stands."""

    name: str
    text: str

    def problem(self, path: list[str], what: str) -> Problem:
        return Problem(f"{self.name}:{self.line(path)}: {what}")

    def line(self, path: list[str]) -> int:
        """Returns the line of the last key of `path` that the file contains. Each key is searched for below its
        parents."""
        lines = self.text.splitlines()
        found, start = 1, 0
        for part in path:
            pattern = re.compile(rf"""(^|[\[{{,.\s])["']?{re.escape(part)}["']?\s*([=.\]])""")
            for number in range(start, len(lines)):
                if pattern.search(lines[number].split("#")[0]):
                    found, start = number + 1, number
                    break
        return found


def parse(file: Path, shown: str) -> tuple[dict[str, Any], Source]:
    """Returns the tables of a file; `shown` is its name in messages."""
    try:
        text = file.read_text(encoding="utf-8")
        if text.startswith("\ufeff"):
            raise Problem(f"{shown}:1: starts with a byte order mark; save it as UTF-8 without one")
        return tomllib.loads(text), Source(shown, text)
    except FileNotFoundError:
        raise Problem(
            f"{file} is missing; `wheelyard init` writes one for the project that it finds"
        ) from None
    except (ValueError, RecursionError) as error:
        raise Problem(f"{shown}{not_toml(error)}") from None


def not_toml(error: Exception) -> str:
    """Says where a file is not valid TOML, and why. A number or nesting may also be too large for Python."""
    if not isinstance(error, UnicodeDecodeError):
        return f" is not valid TOML: {error}"
    before = error.object[: error.start].decode()
    return f":{before.count(chr(10)) + 1}: is not UTF-8; save it in that encoding"


def read(kind: Any, value: Any, path: list[str], source: Source) -> Any:
    """Converts `value` to `kind`: a dataclass, dict, list, str, int or bool, or one of these or None."""
    place = ".".join(path) or "the file"
    kind = without_none(kind)
    origin = typing.get_origin(kind)
    plain = dict if dataclasses.is_dataclass(kind) else origin or kind
    if not isinstance(value, plain) or (isinstance(value, bool) and plain is not bool):
        raise source.problem(path, f"{place} must be {NAMES[plain]}, not {value!r:.80}")
    if dataclasses.is_dataclass(kind):
        return _table(kind, value, path, source)
    if origin is list:
        (item,) = typing.get_args(kind)
        return [read(item, v, path, source) for v in value]
    if origin is dict:
        _, item = typing.get_args(kind)
        return {k: read(item, v, [*path, k], source) for k, v in value.items()}
    return value


def without_none(kind: Any) -> Any:
    """Returns X for X | None."""
    if typing.get_origin(kind) is types.UnionType:
        (kind,) = (part for part in typing.get_args(kind) if part is not types.NoneType)
    return kind


def _table(kind: Any, value: dict[str, Any], path: list[str], source: Source) -> Any:
    place = ".".join(path) or "the file"
    hints = typing.get_type_hints(kind)
    fields = {field.name: field for field in dataclasses.fields(kind)}
    for unknown in value.keys() - fields.keys():
        raise source.problem([*path, unknown], _unknown(unknown, place, list(fields)))
    for name, field in fields.items():
        if name not in value and is_required(field):
            what = f"{place} lacks the key `{name}`: {field.metadata['doc']}"
            if field.metadata["known"]:
                what = f"this version of wheelyard does not know {place}; give its `{name}`: {field.metadata['doc']}"
                if path[0] == "torch":
                    what += f" `wheelyard torch {path[1]}` prints its table"
            raise source.problem(path, what)
    given = {k: read(hints[k], v, [*path, k], source) for k, v in value.items()}
    for name, got in given.items():
        choices = fields[name].metadata["choices"]
        wrong = [
            v for v in (got if isinstance(got, list) else [got]) if choices and v not in choices
        ]
        if wrong:
            known = ", ".join(choices)
            raise source.problem(
                [*path, name], f"{place}.{name} is `{wrong[0]}`; it is one of: {known}"
            )
    make = typing.cast(types.FunctionType, kind)
    return make(**given)


def is_required(field: "dataclasses.Field[Any]") -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _unknown(name: str, place: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, 1, 0.6)
    hint = f"did you mean `{near[0]}`?" if near else f"it takes: {', '.join(sorted(known))}"
    return f"unknown key `{name}` in {place}; {hint}"

"""Documents a configuration file from its definition: as a page for people, and as a JSON schema, so that editors
complete and check it."""

import dataclasses
import typing
from typing import Any

from wheelyard.config.schema import is_required, without_none

MADE = (
    "An unknown key is an error that names its line. The default `known` "
    "is a value that wheelyard knows."
)
TYPES = {str: "string", int: "integer", bool: "boolean"}  # in JSON


def page(kind: Any, file: str) -> str:
    """Returns a Markdown page with a table of keys for each table of the file."""
    lines = [f"# {file}", "", kind.__doc__, "", MADE, "", *_table(kind, [])]
    return "\n".join(lines).rstrip() + "\n"


def _table(kind: Any, path: list[str]) -> list[str]:
    """Returns the keys of one table, then the tables inside it."""
    hints = typing.get_type_hints(kind)
    rows: list[str] = []
    below: list[str] = []
    for field in dataclasses.fields(kind):
        inner = _inner(hints[field.name])
        if inner is not None:
            name, table = inner
            is_list = typing.get_origin(without_none(hints[field.name])) is list
            place = [*path, field.name, *name]
            heading = f"[[{'.'.join(place)}]]" if is_list else f"[{'.'.join(place)}]"
            below += [f"## `{heading}`", "", field.metadata["doc"], "", *_table(table, place)]
        else:
            rows.append(_row(field, hints[field.name]))
    head = ["| key | type | default | meaning |", "|---|---|---|---|"] if rows else []
    return [*head, *rows, *([""] if rows else []), *below]


def _inner(hint: Any) -> tuple[list[str], Any] | None:
    """Returns the table behind a key: the only one, one of several by name, or one of a list."""
    hint = without_none(hint)
    if dataclasses.is_dataclass(hint):
        return [], hint
    arguments = typing.get_args(hint)
    if arguments and dataclasses.is_dataclass(arguments[-1]):
        return (["NAME"] if typing.get_origin(hint) is dict else []), arguments[-1]
    return None


def _row(field: "dataclasses.Field[Any]", hint: Any) -> str:
    choices = field.metadata["choices"]
    kind = ", ".join(f"`{c}`" for c in choices if c) if choices else _words(_schema(hint))
    doc = field.metadata["doc"].replace("|", "\\|")
    if is_required(field):
        default = "known" if field.metadata["known"] else "**required**"
    else:
        factory = field.default_factory
        value = field.default if factory is dataclasses.MISSING else factory()
        default = f"`{value}`" if value not in ("", None, [], {}) else ""
    return f"| `{field.name}` | {kind} | {default} | {doc} |"


def _words(schema: dict[str, Any]) -> str:
    """Returns the type of a plain value, or of those in a list or a table."""
    if schema["type"] == "array":
        return f"list of {_words(schema['items'])}"
    if schema["type"] == "object":
        return f"table of {_words(schema['additionalProperties'])}"
    return {"integer": "number", "boolean": "true or false"}.get(schema["type"], "string")


def json_schema(kind: Any, title: str) -> dict[str, Any]:
    """Returns the whole schema of the file that `kind` defines."""
    head = {"$schema": "http://json-schema.org/draft-07/schema#", "title": title}
    return head | _schema(kind)


def _schema(kind: Any) -> dict[str, Any]:
    kind = without_none(kind)
    if dataclasses.is_dataclass(kind):
        return _object(kind)
    origin = typing.get_origin(kind)
    if origin is list:
        return {"type": "array", "items": _schema(typing.get_args(kind)[0])}
    if origin is dict:
        return {"type": "object", "additionalProperties": _schema(typing.get_args(kind)[1])}
    return {"type": TYPES[kind]}


def _object(kind: Any) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    properties = {}
    for field in dataclasses.fields(kind):
        entry = _schema(hints[field.name]) | {"description": field.metadata["doc"]}
        if choices := field.metadata["choices"]:
            entry.get("items", entry)["enum"] = list(choices)
        properties[field.name] = entry
    fields = dataclasses.fields(kind)
    required = [f.name for f in fields if is_required(f) and not f.metadata["known"]]
    schema: dict[str, Any] = {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }
    return schema | ({"required": required} if required else {})

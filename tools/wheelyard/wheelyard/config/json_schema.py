"""A JSON schema of a configuration file, so that editors complete and check it."""

import dataclasses
import types
import typing
from typing import Any

from wheelyard.config.schema import is_required

PLAIN: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    bool: {"type": "boolean"},
}


def of_file(kind: Any, title: str) -> dict[str, Any]:
    """The whole schema of the file that `kind` defines."""
    head = {"$schema": "http://json-schema.org/draft-07/schema#", "title": title}
    return head | of(kind)


def of(kind: Any) -> dict[str, Any]:
    if typing.get_origin(kind) is types.UnionType:
        (kind,) = (part for part in typing.get_args(kind) if part is not types.NoneType)
    if dataclasses.is_dataclass(kind):
        return _table(kind)
    origin = typing.get_origin(kind)
    if origin is list:
        return {"type": "array", "items": of(typing.get_args(kind)[0])}
    if origin is dict:
        return {"type": "object", "additionalProperties": of(typing.get_args(kind)[1])}
    return dict(PLAIN[kind])


def _table(kind: Any) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    properties = {}
    for field in dataclasses.fields(kind):
        entry = of(hints[field.name]) | {"description": field.metadata["doc"]}
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

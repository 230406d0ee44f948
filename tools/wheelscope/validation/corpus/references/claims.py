"""A wheel's claims: Python's email parser reads METADATA, and `packaging` the file name."""

import email
import email.policy
import platform
import zipfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name, parse_wheel_filename
from packaging.version import Version

from validation.corpus.reference import Facts, Reference

FIELDS = {"name": "Name", "version": "Version", "requires_python": "Requires-Python"}


def unfolded(value: str) -> str:
    return " ".join(value.split())


def claim(wheel: Path, name: str) -> bytes:
    """Returns a file of the dist-info folder."""
    with zipfile.ZipFile(wheel) as members:
        end = f".dist-info/{name}"
        [path] = (one for one in members.namelist() if one.endswith(end) and one.count("/") == 1)
        return members.read(path)


def ask_text(text: bytes) -> dict[str, Any]:
    message = email.message_from_bytes(text, policy=email.policy.compat32)
    facts: dict[str, Any] = {
        fact: unfolded(str(message.get(field, ""))) for fact, field in FIELDS.items()
    }
    facts["requires_dist"] = [unfolded(str(one)) for one in message.get_all("Requires-Dist", [])]
    return facts


def ask(wheel: Path, tree: Path) -> Facts:  # noqa: ARG001 (the wheel is enough)
    return {"": ask_text(claim(wheel, "METADATA"))}


def ours(item: Any, wheel: Path, theirs: Facts) -> Facts:  # noqa: ARG001
    said = item["wheel"]
    facts: dict[str, Any] = {fact: unfolded(said[fact] or "") for fact in FIELDS}
    facts["requires_dist"] = [unfolded(one) for one in said["requires_dist"]]
    return {"": facts}


EMAIL = Reference("email", platform.python_version, ask, ours)


def ask_name(wheel: Path, tree: Path) -> Facts:  # noqa: ARG001 (the name is enough)
    name, release, build, tags = parse_wheel_filename(wheel.name)
    return {
        "": {
            "file name": name,
            "file version": str(release),
            "build": "".join(map(str, build)),
            "tags": sorted(map(str, tags)),
        }
    }


def our_name(item: Any, wheel: Path, theirs: Facts) -> Facts:  # noqa: ARG001
    said = item["wheel"]
    return {
        "": {
            "file name": canonicalize_name(said["name"]),
            "file version": str(Version(said["version"])),
            "build": said["build"] or "",
            "tags": sorted(said["file_name_tags"]),
        }
    }


PACKAGING = Reference("packaging", lambda: version("packaging"), ask_name, our_name)

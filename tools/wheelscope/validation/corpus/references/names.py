"""`packaging`, as the reference for what a wheel's file name says."""

from importlib.metadata import version
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name, parse_wheel_filename
from packaging.version import Version

from validation.corpus.reference import Facts, Reference


def ask(wheel: Path, tree: Path) -> Facts:  # noqa: ARG001 (the name is enough)
    name, release, build, tags = parse_wheel_filename(wheel.name)
    return {
        "": {
            "file name": name,
            "file version": str(release),
            "build": "".join(map(str, build)),
            "tags": sorted(map(str, tags)),
        }
    }


def ours(item: Any, wheel: Path, theirs: Facts) -> Facts:  # noqa: ARG001
    said = item["wheel"]
    return {
        "": {
            "file name": canonicalize_name(said["name"]),
            "file version": str(Version(said["version"])),
            "build": said["build"] or "",
            "tags": sorted(said["file_name_tags"]),
        }
    }


PACKAGING = Reference("packaging", lambda: version("packaging"), ask, ours)

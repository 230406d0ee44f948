"""Rewrites a wheel's metadata: a local version, and the torch that it was built for. Its files keep their bytes.

A wheel is a zip file (https://packaging.python.org/specifications/binary-distribution-format): the folder
NAME-VERSION.dist-info has METADATA, and RECORD with the hash of every file.
"""

import base64
import email
import hashlib
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

Edit = Callable[[str], str]


def bind_to_torch(wheel: Path, local_version: str, torch: str) -> Path:
    """The wheel as VERSION+local, for torch X.Y alone; the old file is gone."""
    name, version, *tags = wheel.name.removesuffix(".whl").split("-")
    new = f"{name}-{version.split('+')[0]}+{local_version}"

    def edit(metadata: str) -> str:
        head, blank, body = metadata.partition("\n\n")
        lines = [_edited(line, local_version, torch) for line in head.split("\n")]
        if not any(_names_torch(line) for line in lines):
            lines.append(f"Requires-Dist: torch=={torch}.*")
        return "\n".join(lines) + blank + body

    return rewrite(
        wheel, wheel.with_name("-".join([new, *tags]) + ".whl"), f"{name}-{version}", new, edit
    )


def _edited(line: str, local_version: str, torch: str) -> str:
    if line.startswith("Version: "):
        return f"{line.strip().split('+')[0]}+{local_version}"
    return f"Requires-Dist: torch=={torch}.*" if _names_torch(line) else line


def requirements(wheel: Path) -> list[str]:
    """The normalised names of the packages that a wheel requires for everyone, without an extra."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", n))
        fields = email.message_from_bytes(archive.read(name))
    wanted = (Requirement(text) for text in fields.get_all("Requires-Dist", []))
    return [canonicalize_name(r.name) for r in wanted if "extra" not in str(r.marker)]


def _names_torch(line: str) -> bool:
    """A requirement of torch for everyone, without an extra."""
    field, _, text = line.partition(": ")
    try:
        requirement = Requirement(text) if field == "Requires-Dist" else None
    except InvalidRequirement:
        return False
    return (
        requirement is not None
        and requirement.name == "torch"
        and "extra" not in str(requirement.marker)
    )


def rewrite(wheel: Path, target: Path, old: str, new: str, edit: Edit) -> Path:
    """Copies the wheel with folders of `old` named for `new`, METADATA edited and RECORD made anew."""
    record = []
    temporary = target.with_suffix(".new")
    with (
        zipfile.ZipFile(wheel) as source,
        zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as made,
    ):
        last = None
        for member in source.infolist():
            data = source.read(member)
            for suffix in (".dist-info/", ".data/"):
                if member.filename.startswith(old + suffix):
                    member.filename = new + member.filename.removeprefix(old)
            if member.filename == f"{new}.dist-info/METADATA":
                data = edit(data.decode()).encode()
            if member.filename == f"{new}.dist-info/RECORD":
                last = member
                continue
            if not member.is_dir():
                record.append(f"{_quoted(member.filename)},sha256={_hash(data)},{len(data)}")
            made.writestr(member, data)
        assert last is not None, f"{wheel.name} has no RECORD"
        made.writestr(last, "\n".join([*record, f"{last.filename},,", ""]))
    wheel.unlink()
    return temporary.replace(target)


def _quoted(path: str) -> str:
    return '"' + path.replace('"', '""') + '"' if "," in path or '"' in path else path


def _hash(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()

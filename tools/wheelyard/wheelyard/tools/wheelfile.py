"""Rewrites wheels: edits metadata, adds files, and gives them all the same normal form.

A wheel is a zip file (https://packaging.python.org/specifications/binary-distribution-format): the folder
NAME-VERSION.dist-info has METADATA, WHEEL with the tags, and RECORD with the hash of every file. `rewrite` sets
everything else that a zip file contains: the order, time and mode of each member, and how it is compressed. So the same
files make the same bytes under any umask, time zone and builder; the compressor's version is an input
(`digest.COMPRESSOR`).
"""

import base64
import csv
import email
import email.message
import hashlib
import io
import re
import time
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from wheelyard.problem import Problem

Edit = Callable[[str], str]
FILE, EXECUTABLE = 0o100644, 0o100755


def rewrite(
    wheel: Path,
    epoch: int,
    *,
    name: str = "",
    edit: Mapping[str, Edit] | None = None,
    add: Mapping[str, bytes] | None = None,
) -> Path:
    """Replaces a wheel by one in normal form, with files of its .dist-info edited or added.

    Another `name` may give it another version, which its folders follow.
    """
    target = wheel.with_name(name or wheel.name)
    old = _stem(wheel)
    new = f"{old.rpartition('-')[0]}-{target.name.split('-')[1]}" if name else old
    information = f"{new}.dist-info/"
    edits = {information + file: change for file, change in (edit or {}).items()}
    added = {information + file: data for file, data in (add or {}).items()}
    record, rows = f"{information}RECORD", []
    when = max(time.gmtime(epoch)[:6], (1980, 1, 1, 0, 0, 0))
    temporary = target.with_suffix(".new")
    with (
        zipfile.ZipFile(wheel) as source,
        zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as made,
    ):

        def put(path: str, data: bytes, mode: int = FILE) -> None:
            member = zipfile.ZipInfo(path, when)
            member.create_system, member.external_attr = 3, mode << 16
            made.writestr(member, data, zipfile.ZIP_DEFLATED)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            rows.append([path, f"sha256={digest}", len(data)])

        members = _members(source, old, new)
        for path in sorted({*members, *added} - {record}, key=lambda p: (".dist-info/" in p, p)):
            data = added.get(path)
            if data is None:
                data = source.read(members[path])
            if path in edits:
                data = edits[path](data.decode()).encode()
            mode = members[path].external_attr >> 16 if path in members else FILE
            put(path, data, EXECUTABLE if mode & 0o111 else FILE)
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([*rows, [record, "", ""]])
        put(record, text.getvalue().encode())
    wheel.unlink()
    return temporary.replace(target)


def _stem(wheel: Path) -> str:
    """Returns NAME-VERSION as the .dist-info folder spells it, which may differ from the file's name."""
    ending = ".dist-info/RECORD"
    with zipfile.ZipFile(wheel) as archive:
        found = [n for n in archive.namelist() if n.endswith(ending) and n.count("/") == 1]
    if len(found) != 1:
        raise Problem(f"{wheel.name} has {len(found)} .dist-info folders with a RECORD, not one")
    return found[0].removesuffix(ending)


def _members(source: zipfile.ZipFile, old: str, new: str) -> dict[str, zipfile.ZipInfo]:
    """Returns the files of a wheel by their new paths. Refuses two of the same name, as two readers could see two
    different files."""
    members: dict[str, zipfile.ZipInfo] = {}
    for member in source.infolist():
        path = member.filename
        for suffix in (".dist-info/", ".data/"):
            if path.startswith(old + suffix):
                path = new + path.removeprefix(old)
        if path in members:
            raise Problem(f"{source.filename} has two members named {member.filename}")
        if not member.is_dir():
            members[path] = member
    return members


def bind_to_torch(wheel: Path, local_version: str, torch: str, epoch: int) -> Path:
    """Replaces a wheel by one with the version VERSION+local, for torch X.Y alone."""
    name, version, *tags = wheel.name.split("-")
    local = f"{version.split('+')[0]}+{local_version}"

    def edit(metadata: str) -> str:
        head, blank, body = metadata.partition("\n\n")
        lines = [_edited(line, local_version, torch) for line in head.split("\n")]
        if not any(_names_torch(line) for line in lines):
            lines.append(f"Requires-Dist: torch=={torch}.*")
        return "\n".join(lines) + blank + body

    return rewrite(wheel, epoch, name="-".join([name, local, *tags]), edit={"METADATA": edit})


def bind_to_python(wheel: Path, tag: str, epoch: int) -> Path:
    """Gives a wheel that would serve every Python the tag of one, such as cp313t, as each has its own wheel."""
    *name, _, _, platform = wheel.name.split("-")
    tags = f"{tag.rstrip('t')}-{tag}-"

    def edit(text: str) -> str:
        lines = text.splitlines(keepends=True)
        return "".join(
            line.replace("py3-none-", tags) if "Tag: " in line else line for line in lines
        )

    return rewrite(wheel, epoch, name=f"{'-'.join(name)}-{tags}{platform}", edit={"WHEEL": edit})


def _edited(line: str, local_version: str, torch: str) -> str:
    if line.startswith("Version: "):
        return f"{line.strip().split('+')[0]}+{local_version}"
    return f"Requires-Dist: torch=={torch}.*" if _names_torch(line) else line


def _names_torch(line: str) -> bool:
    field, _, text = line.partition(": ")
    return field == "Requires-Dist" and _required(text) == "torch"


def requirements(wheel: Path) -> list[str]:
    """Returns the normalised names of the packages that a wheel requires for everyone, without an extra."""
    texts = fields(wheel).get_all("Requires-Dist", [])
    return list(filter(None, map(_required, texts)))


def _required(text: str) -> str:
    """Returns the normalised name in a requirement; empty if it is for an extra alone."""
    wanted = Requirement(text)
    return "" if "extra" in str(wanted.marker) else canonicalize_name(wanted.name)


def fields(wheel: Path) -> email.message.Message:
    """Returns the fields of METADATA."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", n))
        return email.message_from_bytes(archive.read(name))

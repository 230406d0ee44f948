"""Checks whether another program confirms an error that `check` finds in a wheel of the corpus.

Not every wheel on PyPI is healthy: an error is a false one only if the references do not see it.
"""

import base64
import csv
import email
import hashlib
import re
import subprocess
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from packaging.tags import parse_tag
from packaging.utils import parse_wheel_filename

from validation.corpus.reference import Facts
from validation.corpus.references import platforms


def member(wheel: Path, name: str) -> str:
    """Returns a file of the dist-info folder."""
    with zipfile.ZipFile(wheel) as members:
        (path,) = (
            path
            for path in members.namelist()
            if path.endswith(f".dist-info/{name}") and path.count("/") == 1
        )
        return members.read(path).decode()


def platform_is_newer(wheel: Path, item: Any, finding: Any, theirs: dict[str, Facts]) -> bool:  # noqa: ARG001
    """True if auditwheel names the same platform for the binaries, and the tag differs."""
    tag = theirs["auditwheel"][""]["platform_tag"]
    return bool(tag == item["platform_tag"] and tag not in wheel.name)


def tags_differ(wheel: Path, item: Any, finding: Any, theirs: dict[str, Facts]) -> bool:  # noqa: ARG001
    """True if the email parser reads other tags in WHEEL than packaging reads in the file name."""
    written = email.message_from_string(member(wheel, "WHEEL")).get_all("Tag", [])
    inside = {tag for text in written for tag in parse_tag(str(text))}
    return inside != set(parse_wheel_filename(wheel.name)[3])


def record_is_wrong(wheel: Path, item: Any, finding: Any, theirs: dict[str, Facts]) -> bool:  # noqa: ARG001
    """Confirms with csv and hashlib that a file, or as many files as are counted, have no hash or a wrong one."""
    hashes = {line[0]: line[1] for line in csv.reader(member(wheel, "RECORD").splitlines())}
    if counted := re.fullmatch(r"and (\d+) more like it", finding["what"]):
        return sum(not text for text in hashes.values()) > int(counted[1])
    recorded = hashes.get(finding["place"], "")
    with zipfile.ZipFile(wheel) as members:
        digest = hashlib.sha256(members.read(finding["place"])).digest()
    return recorded != "sha256=" + base64.urlsafe_b64encode(digest).decode().rstrip("=")


def only_one_has_it(wheel: Path, item: Any, finding: Any, theirs: dict[str, Facts]) -> bool:  # noqa: ARG001
    """Confirms with csv and zipfile that RECORD lists a file that the wheel lacks, or lacks one that it holds."""
    listed = {line[0] for line in csv.reader(member(wheel, "RECORD").splitlines())}
    with zipfile.ZipFile(wheel) as members:
        held = set(members.namelist())
    found = listed - held if finding["id"] == "record-extra" else held - listed
    return finding["place"] in found


def relocates_text(wheel: Path, item: Any, finding: Any, theirs: dict[str, Facts]) -> bool:  # noqa: ARG001
    """True if readelf sees the text relocations, too."""
    if finding["what"] != "has text relocations":
        return False
    with tempfile.NamedTemporaryFile() as library, zipfile.ZipFile(wheel) as members:
        library.write(members.read(finding["place"]))
        library.flush()
        said = subprocess.run(["readelf", "-d", library.name], capture_output=True, text=True)
    return "(TEXTREL)" in said.stdout


def lacks_libraries(wheel: Path, item: Any, finding: Any, theirs: dict[str, Facts]) -> bool:  # noqa: ARG001
    """True if auditwheel misses the same libraries, and so calls the wheel plain linux."""
    missed = platforms.outside(platforms.analyse(wheel, frozenset()))
    return set(item["platform"]["external_libraries"]) <= missed


Confirm = Callable[[Path, Any, Any, dict[str, Facts]], bool]
CONFIRM: dict[str, Confirm] = {
    "tag-platform": platform_is_newer,
    "tag-mismatch": tags_differ,
    "record-hash": record_is_wrong,
    "record-extra": only_one_has_it,
    "record-unlisted": only_one_has_it,
    "hardening": relocates_text,
    "needed": lacks_libraries,
}


def is_confirmed(wheel: Path, item: Any, finding: Any, theirs: dict[str, Facts]) -> bool:
    confirm = CONFIRM.get(finding["id"])
    return confirm is not None and confirm(wheel, item, finding, theirs)

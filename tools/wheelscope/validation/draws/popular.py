"""`python -m validation.draws.popular TOP_PACKAGES_JSON >popular.txt`: popular packages with native code, in order.

The JSON is that of the repository hugovk/top-pypi-packages: the most downloaded projects. A project is taken if the
index has a wheel of it with machine code for this Python and machine, of at most 60 MB.
"""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from packaging.tags import sys_tags
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

from validation.atlas_list import AT_ONCE, INDEX, get

LIST = Path(__file__).with_name("popular.txt")
ASKED = 4000
LARGEST = 60_000_000
TAGS = frozenset(sys_tags())


def versions_with_wheel(name: str) -> list[Version]:
    """Returns the versions with such a wheel, oldest first, without pre-releases and withdrawn
    files."""
    page = get(f"{INDEX}/pypi/{name}/json")
    releases = json.loads(page)["releases"] if page else {}
    found = set()
    for file in (file for files in releases.values() for file in files):
        if not file["filename"].endswith(".whl") or file["yanked"] or file["size"] > LARGEST:
            continue
        try:
            _, version, _, tags = parse_wheel_filename(file["filename"])
        except InvalidWheelFilename:
            continue
        native = any(tag.platform != "any" for tag in tags)
        if native and tags & TAGS and not version.is_prerelease:
            found.add(version)
    return sorted(found)


def main() -> None:
    top = json.loads(Path(sys.argv[1]).read_text())
    names = [row["project"] for row in top["rows"][:ASKED]]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = pool.map(versions_with_wheel, names)
        native = [name for name, versions in zip(names, found, strict=True) if versions]
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    date = top["last_update"][:10]
    print(f"# The {len(native):,} of the {ASKED:,} most downloaded projects of {date} that have a")
    print(
        f"# wheel with native code for CPython {python} on x86_64 Linux, of at most 60 MB, in order."
    )
    print(*native, sep="\n")


if __name__ == "__main__":
    main()

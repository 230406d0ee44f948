"""Draws from a seed and validation/draws/popular.txt; the draw is written down before anything is
tried.

Versions come from the index, so a later run of a seed may draw newer ones.

`python -m validation.draws.draw TOP_PACKAGES_JSON >popular.txt` makes the list: popular packages with native code, in
order. The JSON is that of the repository hugovk/top-pypi-packages: the most downloaded projects. A project is taken
if the index has a wheel of it with machine code for this Python and machine, of at most 60 MB.
"""

import functools
import json
import random
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from packaging.tags import sys_tags
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

from validation.atlas_list import AT_ONCE, INDEX, get

LIST = Path(__file__).with_name("popular.txt")
ASKED = 4000
LARGEST = 60_000_000
TAGS = frozenset(sys_tags())
# These bring gigabytes or take minutes to import, so no project that requires one of them is tried.
TOO_LARGE = ("torch", "tensorflow", "tensorflow-cpu", "jaxlib", "triton", "pyspark", "paddlepaddle")
IN_ENVIRONMENTS = 200  # of the list, for environments
OLD_NUMPY, NEW_NUMPY = "numpy==1.26.4", "numpy==2.2.6"
HARMS = {
    "nothing": 6,
    "delete": 3,  # a file
    "shorten": 2,  # a file
    "other processor": 2,  # one package is replaced by that for aarch64
    "other Python": 2,  # one package is replaced by that for CPython 3.12
    "uninstall": 2,  # one package, drawn or required
    "other version": 3,  # of one package, drawn or required, ignoring requirements
}
FILES = (".so", ".so", ".py", "__init__.py")  # endings of their names

Row = dict[str, Any]


@functools.cache
def versions(name: str) -> list[Version]:
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


def popular() -> list[str]:
    lines = [line for line in LIST.read_text().splitlines() if not line.startswith("#")]
    return [name for name in " ".join(lines).split() if name not in TOO_LARGE]


def version_of(name: str, dice: random.Random) -> str:
    """Returns the newest version or any, with equal chance."""
    there = versions(name)
    return f"{name}=={there[-1] if dice.random() < 0.5 else dice.choice(there)}"


def environments(seed: int, count: int) -> list[Row]:
    dice = random.Random(seed)
    pool = popular()[:IN_ENVIRONMENTS]
    return [
        {
            "install": [version_of(name, dice) for name in dice.sample(pool, dice.randint(3, 7))],
            # Ignores requirements; None: as they say.
            "numpy": dice.choice([None, None, None, OLD_NUMPY, NEW_NUMPY]),
            "harm": dice.choices(list(HARMS), list(HARMS.values()))[0],
            "files": dice.choice(FILES),
            "pick": dice.random(),  # which file or package, from 0 for the first to 1
            "pick_version": dice.random(),
        }
        for _ in range(count)
    ]


def packages(seed: int, count: int) -> list[Row]:
    dice = random.Random(seed)
    return [
        {
            "ask": version_of(name, dice),
            "beside": dice.choice([None, None, OLD_NUMPY, NEW_NUMPY]),  # installed first
        }
        for name in dice.sample(popular(), count)
    ]


def main() -> None:
    top = json.loads(Path(sys.argv[1]).read_text())
    names = [row["project"] for row in top["rows"][:ASKED]]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = pool.map(versions, names)
        native = [name for name, there in zip(names, found, strict=True) if there]
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    date = top["last_update"][:10]
    print(f"# The {len(native):,} of the {ASKED:,} most downloaded projects of {date} that have a")
    print(
        f"# wheel with native code for CPython {python} on x86_64 Linux, of at most 60 MB, in order."
    )
    print(textwrap.fill(" ".join(native), 120, break_on_hyphens=False, break_long_words=False))


if __name__ == "__main__":
    main()

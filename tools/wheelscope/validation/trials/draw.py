"""Draws from a seed and popular.txt; versions come from the index, so a later run may draw newer ones.

popular.txt has those of the most downloaded projects (hugovk/top-pypi-packages) of which versions() finds a wheel.
"""

import functools
import random
from pathlib import Path
from typing import Any

from packaging.tags import sys_tags
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

from validation import pypi

LIST = Path(__file__).with_name("popular.txt")
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
    found = set()
    for file in pypi.files_of(name):
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

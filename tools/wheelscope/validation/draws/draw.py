"""Draws from a seed and validation/draws/popular.txt; the draw is written down before anything is
tried.

Versions come from the index, so a later run of a seed may draw newer ones.
"""

import functools
import random
from typing import Any

from validation.draws.popular import LIST, versions_with_wheel

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
versions = functools.cache(versions_with_wheel)


def popular() -> list[str]:
    names = [line for line in LIST.read_text().splitlines() if line[:1] not in ("", "#")]
    return [name for name in names if name not in TOO_LARGE]


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

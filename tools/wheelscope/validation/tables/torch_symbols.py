"""Writes src/data/torch_symbols.csv: C++ symbols of torch that came or went, by first and last version.

Torch has a hundred thousand, and half of them change. Only those that extensions use count: give a
folder with wheels of extensions, old and new. For each version of torch, the table keeps MOST
symbols that came with it, and as many that it was the last to have: those that the most wheels
need. Torch's x86_64 wheels (11 GB) are downloaded into the folder one after the other, and deleted.
"""

import argparse
import re
from collections import Counter
from pathlib import Path

from validation import pypi
from validation.program import ask
from validation.tables import layout

MINORS = [f"2.{minor}" for minor in range(16)]
MOST = 20
TORCHS = re.compile(r"_Z(N|NK|TVN|TIN)?(2at|3c10|5torch|\d+THP)")


def symbols(wheel: Path, defined: bool) -> set[str]:
    (item,) = ask("dump", "--symbols", wheel)["items"]
    every = ((one["name"], one["defined"]) for one in item["symbols"])
    return {name for name, known in every if known == defined and TORCHS.match(name)}


def exported(minor: str, folder: Path) -> set[str]:
    """Returns the symbols that the last release of a minor version exports."""
    options = ["--python-version=3.11", "--abi=cp311", *pypi.platform_options("x86_64")]
    pypi.download(f"torch=={minor}.*", folder, options)
    (wheel,) = folder.glob("torch-2*.whl")
    found = symbols(wheel, defined=True)
    wheel.unlink()
    print(f"torch {minor}: {len(found):,} symbols", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    wheels = [symbols(wheel, defined=False) for wheel in sorted(folder.glob("*.whl"))]
    used = Counter(symbol for needed in wheels for symbol in needed)
    torches = {minor: exported(minor, folder) & used.keys() for minor in MINORS}
    came: dict[str, list[tuple[str, str, str]]] = {minor: [] for minor in MINORS[1:]}
    went: dict[str, list[tuple[str, str, str]]] = {minor: [] for minor in MINORS[:-1]}
    for symbol, _ in sorted(used.items(), key=lambda one: (-one[1], one[0])):
        have = [index for index, minor in enumerate(MINORS) if symbol in torches[minor]]
        if not have or have[-1] - have[0] >= len(have):
            continue  # unknown, or with a gap
        first, last = MINORS[have[0]], MINORS[have[-1]]
        row = (symbol, first, last if last in went else "")
        for group in (came.get(first), went.get(last)):
            if group is not None and len(group) < MOST:
                group.append(row)
    rows = {row for group in (*came.values(), *went.values()) for row in group}
    head = [
        "C++ symbols of torch that came or went: the first version that has each, and the last one, if that",
        "is not the newest.",
        f"Source: torch's x86_64 wheels on PyPI, {MINORS[0]} to {MINORS[-1]}, and what {len(wheels)} wheels need.",
        "Generator: make table TABLE=torch_symbols FROM=FOLDER",
    ]
    ordered = sorted(rows, key=lambda row: (layout.by_version(row[1]), row[2:], row[0]))
    layout.write_csv("torch_symbols.csv", head, "symbols,first_version,last_version", ordered)


if __name__ == "__main__":
    main()

"""Downloads the wheels of tests/wheelscope/corpus.txt from PyPI and checks their hashes.

The list has sha256sum's format. A wheel's file name says all that pip must know to find it.
"""

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

from scripts import pypi

ROOT = Path(__file__).parents[2]
LIST = ROOT / "tests/wheelscope/corpus.txt"


@dataclass(frozen=True)
class Wheel:
    file_name: str
    sha256: str


def read_list() -> list[Wheel]:
    lines = [line.split() for line in LIST.read_text().splitlines()]
    return [Wheel(line[1], line[0]) for line in lines if line and not line[0].startswith("#")]


def pip_options(file_name: str) -> tuple[str, list[str]]:
    """The requirement and the options with which pip finds exactly this file."""
    name, version, *_, python, abi, platforms = file_name.removesuffix(".whl").split("-")
    options = [f"--platform={platform}" for platform in platforms.split(".")] + [f"--abi={abi}"]
    if abi.startswith("cp"):
        options.append(f"--python-version={python.removeprefix('cp')}")
    return f"{name}=={version}", options


def fetch(wheel: Wheel, folder: Path) -> None:
    file = folder / wheel.file_name
    if not file.exists():
        requirement, options = pip_options(wheel.file_name)
        pypi.download(requirement, folder, options)
    if not file.exists():
        sys.exit(f"error: PyPI gave another file for {wheel.file_name}; see {folder}")
    if pypi.sha256(file) != wheel.sha256:
        sys.exit(f"error: {file} is not the file of {LIST}: delete it and try again")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("build/corpus"))
    folder = parser.parse_args().folder
    wheels = read_list()
    for number, wheel in enumerate(wheels, 1):
        print(f"[{number}/{len(wheels)}] {wheel.file_name}", flush=True)
        fetch(wheel, folder)


if __name__ == "__main__":
    main()

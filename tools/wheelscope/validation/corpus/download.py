"""Downloads the wheels of tests/corpus.txt from PyPI and checks their hashes.

A line of the list has a wheel's SHA-256, its file name and the reason for its choice. The file name
says everything that pip needs to find it.
"""

import argparse
import itertools
import re
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from validation import pypi
from validation.program import ROOT

LIST = ROOT / "tests/corpus.txt"


@dataclass(frozen=True)
class Wheel:
    file_name: str
    sha256: str
    purpose: str


def read_list(file: Path = LIST) -> list[Wheel]:
    lines = [line.split(maxsplit=2) for line in file.read_text().splitlines()]
    return [
        Wheel(file_name, sha256, purpose)
        for sha256, file_name, purpose in (line for line in lines if line and line[0] != "#")
    ]


def pip_options(file_name: str) -> tuple[str, list[str]]:
    """Returns the requirement and the options with which pip finds exactly this file.

    The package need not support the Python that is used: a wheel for any Python 3 is searched for
    with the Python that runs this.
    """
    name, version, *_, python, abis, platforms = file_name.removesuffix(".whl").split("-")
    options = ["--ignore-requires-python"]
    options += [f"--platform={platform}" for platform in platforms.split(".")]
    options += [f"--abi={abi}" for abi in abis.split(".")]
    implementation, digits = re.fullmatch(r"([a-z]+)(\d+)", python.split(".")[-1]).groups()  # type: ignore[union-attr]
    options.append(f"--implementation={implementation}")
    if len(digits) > 1:
        options.append(f"--python-version={digits}")
    return f"{name}=={version}", options


def fetch(wheel: Wheel, folder: Path) -> None:
    file = folder / wheel.file_name
    if not file.exists():
        requirement, options = pip_options(wheel.file_name)
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as pinned:
            # With its hash, because the tags of two files of a release may overlap.
            print(f"{requirement} --hash=sha256:{wheel.sha256}", file=pinned, flush=True)
            pypi.download(f"--requirement={pinned.name}", folder, options)
    if not file.exists():
        sys.exit(f"error: PyPI gave another file for {wheel.file_name}; see {folder}")
    if pypi.sha256(file) != wheel.sha256:
        sys.exit(f"error: {file} is not the file of {LIST}: delete it and try again")


def fetched(wheels: list[Wheel], folder: Path) -> Iterator[Path]:
    """Yields each wheel when it has arrived, while the next one is downloaded."""
    with ThreadPoolExecutor(1) as downloads:
        coming = [downloads.submit(fetch, wheel, folder) for wheel in wheels[:1]]
        for wheel, after in itertools.zip_longest(wheels, wheels[1:]):
            coming.pop().result()
            if after:
                coming.append(downloads.submit(fetch, after, folder))
            yield folder / wheel.file_name


def arguments(description: str | None) -> argparse.ArgumentParser:
    """Returns the arguments that say which wheels of the corpus are meant."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("build/corpus"))
    parser.add_argument("--wheel", default="*", help="a pattern for the file names")
    return parser


def chosen(options: argparse.Namespace) -> list[Wheel]:
    return [one for one in read_list() if fnmatchcase(one.file_name, options.wheel)]


def main() -> None:
    options = arguments(__doc__).parse_args()
    folder, wheels = options.folder, chosen(options)
    for number, wheel in enumerate(wheels, 1):
        print(f"[{number}/{len(wheels)}] {wheel.file_name}", flush=True)
        fetch(wheel, folder)


if __name__ == "__main__":
    main()

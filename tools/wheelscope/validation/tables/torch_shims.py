"""Writes src/data/torch_shims.csv: torch's stable C functions, by first version.

A function counts when torch's shim headers declare it and a library of torch exports it, which
wheelscope itself reads from the wheels. x86_64 wheels serve: there every release has CUDA, so
libtorch_cpu.so and libtorch_cuda.so are both seen. The wheels are large (5 GB): give a folder with
those that you have, and the rest is downloaded into it.
"""

import argparse
import re
import zipfile
from pathlib import Path

from validation import pypi
from validation.program import ask
from validation.tables import layout

RELEASES = [f"2.{minor}.0" for minor in range(9, 16)]
HEADERS = re.compile(
    r"torch/include/torch/csrc/"
    r"(stable/.*|inductor/aoti_torch/c/shim.*|inductor/aoti_torch/generated/.*)\.h"
)
DECLARATION = re.compile(r"\b((?:aoti_)?torch_\w+)\s*\(")
LIBRARIES = {"torch/lib/libtorch_cpu.so": "cpu", "torch/lib/libtorch_cuda.so": "cuda"}


def wheel_of(release: str, folder: Path) -> Path:
    pattern = f"torch-{release}-*x86_64.whl"
    if not list(folder.glob(pattern)):
        python = ["--python-version=3.11", "--abi=cp311"]
        pypi.download(f"torch=={release}", folder, [*python, *pypi.platform_options("x86_64")])
    return next(folder.glob(pattern))


def declared(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as members:
        headers = [members.read(name) for name in members.namelist() if HEADERS.fullmatch(name)]
    return {name for text in headers for name in DECLARATION.findall(text.decode())}


def exported(wheel: Path) -> dict[str, str]:
    """Returns C function -> the library that has it."""
    (item,) = ask("dump", "--symbols", wheel)["items"]
    return {
        symbol["name"]: LIBRARIES[symbol["library"]]
        for symbol in item["symbols"]
        if symbol["defined"] and symbol["library"] in LIBRARIES
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("build/tables/torch"))
    folder = parser.parse_args().folder
    first: dict[str, tuple[str, str]] = {}
    for release in RELEASES:
        wheel = wheel_of(release, folder)
        libraries = exported(wheel)
        new = sorted((declared(wheel) & libraries.keys()) - first.keys())
        first |= {name: (release.removesuffix(".0"), libraries[name]) for name in new}
        print(f"torch {release}: {len(new)} new functions")
    rows = [(name, version, library) for name, (version, library) in first.items()]
    head = [
        "The C functions of torch's stable ABI, declared in its headers and exported by its",
        "libraries: the first torch that has each, and libtorch_cpu or libtorch_cuda.",
        f"Source: torch's x86_64 wheels on PyPI, {' '.join(RELEASES)},",
        "read by wheelscope. Generator: make table TABLE=torch_shims",
    ]
    rows.sort(key=lambda row: (layout.by_version(row[1]), row[2], row[0]))
    layout.write_csv("torch_shims.csv", head, "symbols,first_version,library", rows)


if __name__ == "__main__":
    main()

"""Writes src/data/cuda_libraries.csv: the distribution that brings each library of CUDA.

The sources are environments with torch and the NVIDIA distributions that it requires, one for each
major version of CUDA: their RECORD files name every library. Rows of environments that are not
given are kept.
"""

import csv
import sys
from pathlib import Path

from validation.tables import layout

HEAD = [
    "Libraries of CUDA and the distributions on PyPI that bring them. Source: RECORD files of the",
    "nvidia distributions that torch requires. Generator: make table TABLE=cuda_libraries",
]
Rows = dict[tuple[str, str], str]  # library and CUDA's major version -> distribution


def libraries(site_packages: Path) -> Rows:
    found: Rows = {}
    runtime = next(site_packages.glob("nvidia_cuda_runtime*.dist-info")).name
    cuda = runtime.removesuffix(".dist-info").partition("-")[2].partition(".")[0]
    for record in sorted(site_packages.glob("nvidia_*.dist-info/RECORD")):
        distribution = record.parent.name.partition("-")[0].replace("_", "-")
        for path, *_ in csv.reader(record.read_text().splitlines()):
            name = Path(path).name
            # Libraries that programs link against have a version; .alt files are only for NVRTC.
            if name.startswith("lib") and ".so." in name and ".alt." not in name:
                found[name, cuda] = distribution
    return found


def main(folders: list[str]) -> None:
    known: Rows = {}
    if (layout.DATA / "cuda_libraries.csv").exists():
        for library, cuda, distribution in layout.read_csv("cuda_libraries.csv"):
            known[library, cuda] = distribution
    for folder in folders:
        known |= libraries(Path(folder))
    rows = [(name, cuda, distribution) for (name, cuda), distribution in known.items()]
    rows.sort(key=lambda row: (row[1:], row[0]))
    layout.write_csv("cuda_libraries.csv", HEAD, "libraries,cuda,distribution", rows)


if __name__ == "__main__":
    main(sys.argv[1:])

"""Completes a CUDA toolkit with the headers and libraries that torch's own dependencies brought.

ATen's CUDA headers include those of cuBLAS, cuSPARSE and cuSOLVER, and projects link to them by names without a
version, which no package on PyPI has.

    python complete_toolkit.py FOLDER
"""

import importlib.util
import sys
from pathlib import Path


def complete(toolkit: Path, packages: Path) -> None:
    """Links headers and libraries that the toolkit lacks to the files in site-packages/nvidia."""
    for part in ("include", "lib"):
        for source in sorted(packages.glob(f"*/{part}")):
            for file in sorted(source.iterdir()):
                link = toolkit / part / file.name
                if not link.exists():
                    link.symlink_to(file)
    for library in sorted((toolkit / "lib").glob("lib*.so.*")):
        plain = library.with_name(library.name.partition(".so.")[0] + ".so")
        if not plain.exists():
            plain.symlink_to(library.name)


def main() -> None:
    found = importlib.util.find_spec("nvidia")
    for folder in found.submodule_search_locations or [] if found else []:
        complete(Path(sys.argv[1]), Path(folder))


if __name__ == "__main__":
    main()

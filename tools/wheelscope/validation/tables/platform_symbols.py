"""Writes src/data/platform_symbols.csv: what the C library and gcc's runtime export.

Linkers leave the version out of some references; the name alone then has to tell that the platform
has the symbol. C++ names are left out: wheelscope knows the runtime's by their namespace.
"""

import subprocess

from validation.tables import layout

LIBRARIES = ("libc.so.6", "libm.so.6", "libgcc_s.so.1", "libresolv.so.2")


def output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main() -> None:
    symbols: dict[str, str] = {}
    for library in LIBRARIES:
        path = output("gcc", f"-print-file-name={library}").strip()
        for line in output("nm", "--dynamic", "--defined-only", path).splitlines():
            name = line.split()[-1].split("@")[0]
            if not name.startswith(("_Z", "GLIBC_", "GCC_")):
                symbols.setdefault(name, library)
    version = output("ldd", "--version").splitlines()[0].split()[-1]
    compiler = output("gcc", "-dumpfullversion").strip()
    head = (
        f"Symbols of the C library and of the compiler's runtime. Source: glibc {version} and "
        f"gcc {compiler} of Debian. Generator: make table TABLE=platform_symbols"
    )
    rows = sorted(symbols.items(), key=lambda row: (LIBRARIES.index(row[1]), row[0]))
    layout.write_csv("platform_symbols.csv", [head], "symbols,library", rows)


if __name__ == "__main__":
    main()

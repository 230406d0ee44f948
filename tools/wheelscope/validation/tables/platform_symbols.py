"""Writes src/data/platform_symbols.csv: what the C library and gcc's runtime export.

Linkers leave the version out of some references; the name alone then has to tell that the platform
has the symbol. C++ names are left out: wheelscope knows the runtime's by their namespace.
"""

import subprocess
from pathlib import Path

TABLE = Path("src/data/platform_symbols.csv")
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
    lines = [
        f"# Symbols of the C library and of the compiler's runtime. Source: glibc {version} and "
        f"gcc {compiler} of Debian. Generator: make table TABLE=platform_symbols",
        "symbol,library",
        *(f"{name},{library}" for name, library in sorted(symbols.items())),
    ]
    TABLE.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()

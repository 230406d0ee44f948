"""Makes small wheels with a library from a real linker."""

import os
import platform
import subprocess
import sys
from pathlib import Path

from fixture_zip import archive
from fixtures import record

MACHINE = platform.machine()
PYTHON = f"cp{sys.version_info.major}{sys.version_info.minor}"
NAME = f"sample-1.0-{PYTHON}-{PYTHON}-manylinux_2_17_{MACHINE}.whl"  # for this very Python
PADDING = 8 << 20  # incompressible bytes behind the tables


def library(folder: Path, source: str = "", *flags: str) -> bytes:
    """Links a Python module for this machine."""
    code, output, padding = folder / "sample.c", folder / "sample.so", folder / "padding"
    padding.write_bytes(os.urandom(PADDING))
    code.write_text(
        f"""#include <stdio.h>
        __asm__(".section .rodata\\n.incbin \\"{padding}\\"\\n.text\\n");
        void *PyInit_sample(void) {{ puts("imported"); return 0; }}
        {source}"""
    )
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", output, code, *flags], check=True)
    return output.read_bytes()


def wheel(name: str, members: dict[str, bytes], metadata: str = "") -> bytes:
    """Makes a sound wheel, unless the members include a file of its dist-info folder."""
    project, version, *tags = name.removesuffix(".whl").split("-")
    info = f"{project}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {project}\nVersion: {version}\n{metadata}"
    claims = f"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: {'-'.join(tags[-3:])}\n"
    written = {f"{info}/METADATA": metadata.encode(), f"{info}/WHEEL": claims.encode(), **members}
    return archive({**written, f"{info}/RECORD": record(written, info)})

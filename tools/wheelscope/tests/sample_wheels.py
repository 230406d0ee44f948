"""Small wheels with a library that a real linker made."""

import base64
import hashlib
import io
import os
import platform
import subprocess
import sys
import zipfile
from pathlib import Path

MACHINE = platform.machine()
PYTHON = f"cp{sys.version_info.major}{sys.version_info.minor}"
NAME = f"sample-1.0-{PYTHON}-{PYTHON}-manylinux_2_17_{MACHINE}.whl"  # for this very Python
PADDING = 8 << 20  # bytes that do not deflate, behind the tables


def library(folder: Path, source: str = "", *flags: str) -> bytes:
    """A module of Python's, linked for this machine."""
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
    project, version, *tags = name.removesuffix(".whl").split("-")
    info = f"{project}-{version}.dist-info"
    members = {
        **members,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {project}\nVersion: {version}\n{metadata}".encode(),
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: {'-'.join(tags[-3:])}\n".encode(),
    }
    rows = [
        f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip('=')}"
        f",{len(data)}\n"
        for path, data in members.items()
    ]
    members[f"{info}/RECORD"] = "".join([*rows, f"{info}/RECORD,,\n"]).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in members.items():
            archive.writestr(path, data)
    return buffer.getvalue()

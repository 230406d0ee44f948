"""Makes src/data/cudart.json: how a CUDA runtime's bytes tell its version.

A statically linked runtime has no SONAME and no symbols left. Two independent traces remain:
  names     texts that its read-only data has from one minor version on: messages, names of errors
            and of driver functions. Those present give the lowest version, the first absent ones
            the highest.
  constant  the number that cudaRuntimeGetVersion stores (12090 is 12.9), in a code sequence that
            has stayed the same in every release. Other libraries have such a function too, so the
            names must agree.
The source is NVIDIA's runtime wheels on PyPI, shared library and static one where they have it.
"""

import re
import struct
import sys
import zipfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

from elftools.elf.elffile import ELFFile

from validation import pypi

WHEELS = Path("build/tables/cudart")
PACKAGES = {
    "nvidia-cuda-runtime-cu11": "11.7 11.8",
    "nvidia-cuda-runtime-cu12": "12.0 12.1 12.2 12.3 12.4 12.5 12.6 12.8 12.9",
    "nvidia-cuda-runtime": "13.0 13.1 13.2 13.3 13.4",
}
X86_64_ONLY = {"11.7", "11.8", "12.0", "12.1", "12.2"}
PRESENT = "CUDA driver version is insufficient for CUDA runtime version"
MARKERS_PER_MINOR = 2

# int *version is the argument: return an error if it is null, store the constant, return success.
CODE = {
    # test rdi,rdi; je; mov [rdi],CONSTANT; xor eax,eax; ret
    "x86_64": {"before": "4885ff740bc707", "after": "31c0c3"},
    # cbz x0; mov w2,CONSTANT; mov w0,0; str w2,[x1]; ret
    "aarch64": {"before": "a00000b4", "after": "00008052220000b9c0035fd6"},
}


def runtimes(wheel: Path) -> Iterator[bytes]:
    """Yields the ELF files of the runtime in a wheel; the static library is an archive of one
    object."""
    with zipfile.ZipFile(wheel) as members:
        for name in members.namelist():
            if re.search(r"/libcudart(\.so\.[\d.]+|_static\.a)$", name):
                content = members.read(name)
                yield content[content.index(b"\x7fELF") :]


def texts(elf: bytes) -> set[str]:
    """Returns the texts in the read-only data, not the names in the symbol tables."""
    sections = ELFFile(BytesIO(elf)).iter_sections()
    data = b"\0".join(s.data() for s in sections if s.name.startswith(".rodata"))
    return {text.decode() for text in re.findall(rb"(?<=\0)[A-Za-z][\x20-\x7e]{11,}(?=\0)", data)}


def constants(elf: bytes, arch: str) -> set[int]:
    before, after = (bytes.fromhex(CODE[arch][key]) for key in ("before", "after"))
    found = set()
    for match in re.finditer(re.escape(before) + b"(.{4})" + re.escape(after), elf, re.DOTALL):
        (word,) = struct.unpack("<I", match[1])
        if arch == "x86_64":
            found.add(word)
        elif word & 0xFFE0001F == 0x52800002:  # movz w2, #imm16
            found.add(word >> 5 & 0xFFFF)
    return found


def read_minor(package: str, minor: str) -> tuple[list[str], set[str]]:
    """Returns the wheels of a minor version and the texts that all its runtimes share."""
    wheels, shared = [], None
    for arch in ("x86_64",) if minor in X86_64_ONLY else ("x86_64", "aarch64"):
        wheel = pypi.wheel(f"{package}=={minor}.*", WHEELS / f"{minor}-{arch}", arch)
        wheels.append(wheel.name)
        for elf in runtimes(wheel):
            major, _, rest = minor.partition(".")
            if int(major) * 1000 + int(rest) * 10 not in constants(elf, arch):
                sys.exit(f"error: {wheel.name}: its version constant is not where CODE says")
            shared = texts(elf) if shared is None else shared & texts(elf)
    return wheels, shared or set()


def rank(text: str) -> tuple[bool, bool, bool, str]:
    """Sorts the best first: long messages are the runtime's own; profilers may name its functions
    too."""
    message = " " in text and len(text) >= 30
    return (not message, not text.startswith("cudaError"), "%" in text or " " in text, text)


def table() -> dict[str, Any]:
    minors = [(p, minor) for p, minors in PACKAGES.items() for minor in minors.split()]
    read = [read_minor(*minor) for minor in minors]
    found: list[dict[str, Any]] = []
    for i, (_, minor) in enumerate(minors):
        if i == 0:
            continue  # the oldest minor has no predecessor to differ from
        new = set.intersection(*(shared for _, shared in read[i:]))
        new.difference_update(*(shared for _, shared in read[:i]))
        if not new:
            sys.exit(f"error: nothing new in CUDA {minor}; it cannot be told from the one before")
        found.append({"version": minor, "markers": sorted(new, key=rank)[:MARKERS_PER_MINOR]})
        print(minor, len(new), found[-1]["markers"])
    if not all(PRESENT in shared for _, shared in read):
        sys.exit(f"error: not every runtime has the text {PRESENT!r}")
    wheels = [wheel for wheels, _ in read for wheel in wheels]
    return {
        "source": "the texts and code of libcudart in NVIDIA's wheels on PyPI",
        "wheels": wheels,
        "generator": "make table TABLE=cudart",
        "present": PRESENT,
        "code": CODE,
        "minors": found,
    }

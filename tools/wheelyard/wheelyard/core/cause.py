"""Finds the cause of a failure in a program's log, and gives advice on the commonest causes."""

import re

SHOWN_LINES = 4  # lines shown of a cause: a compiler prints the source line below its message
LONGEST = 300
# Patterns of causes, the surest first. Only the first match of each counts: later ones follow from it.
CAUSES = [
    re.compile(r"^\S.*?(:\d+(:\d+)?:|\(\d+\):) (fatal |catastrophic )?error\b"),  # g++, clang, nvcc
    re.compile(r"^\S+\.pyx:\d+:\d+: "),  # Cython
    re.compile(r"^CMake Error( at .+:\d+)?"),
    re.compile(r"undefined reference to |cannot find -l"),
    re.compile(r"^error in .+ setup command: "),  # setuptools
    re.compile("This does not look like a platform wheel"),  # auditwheel
    re.compile(r"^ERROR: (No matching distribution|Could not find a version|Cannot install) .+"),
    re.compile(r"no trusted hash was provided for"),  # uv
    re.compile(r"^ERROR: (In --require-hashes mode|THESE PACKAGES DO NOT MATCH THE HASHES)"),  # pip
    re.compile(r"^(E  +)?(ImportError|ModuleNotFoundError|OSError): .+"),
    re.compile(r"^E  +\S"),  # pytest
]
HINTS = {  # advice, by a pattern that a line of the log matches
    "No space left on device": "The disk is full: free some space, then run again. `docker system df` shows what "
    "images and their layers take; `wheelyard image --prune` removes those that this project does not need.",
    "TLS handshake timeout": "The image registry is not reachable: `--base debian` needs none.",
    "Killed signal terminated program": "The compiler ran out of memory: raise [build] job_memory_mb in the matrix, so "
    "that fewer run side by side.",
    "ERROR: No matching distribution found": "The package index lacks that version, or a wheel of it for this Python "
    "and CPU.",
    "no trusted hash was provided for": "The lock lacks a package: pin everything that torch needs in ci/torch.lock, "
    "with `uv pip compile --generate-hashes`.",
    "In --require-hashes mode": "The lock that `requires` names lacks a package: make a complete one with "
    "`uv pip compile --universal --generate-hashes`.",
    "FetchContent.cmake": "A build has no network. If this is a download, name its URL and sha256 in the matrix, as "
    '[[build.downloads]], and tell CMake where it is: CMAKE_ARGS = "-DFETCHCONTENT_SOURCE_DIR_<NAME>=...".',
    r"fatal error: \S+\.h\w*: No such file|cannot find -l": "If a Debian package has it, name that package "
    'in the matrix, such as [build] apt = ["libgmp-dev"].',
    "This does not look like a platform wheel": "The build made no library. If its log has `Unknown distribution "
    "option`, name the package that adds this option, such as cffi, in the matrix: [build] requires.",
    "No module named 'torch'": "The build needs torch but does not require it: add it to [build-system] requires.",
}


def of(lines: list[str]) -> list[str]:
    """Returns the lines of a log that show the cause; empty if no cause is recognised."""
    for pattern in CAUSES:
        for number, line in enumerate(lines):
            if pattern.search(_plain(line)):
                return [_plain(text)[:LONGEST] for text in lines[number : number + SHOWN_LINES]]
    return []


def hints(lines: list[str]) -> list[str]:
    """Returns advice on the causes that are known."""
    return [
        hint for seen, hint in HINTS.items() if any(re.search(seen, _plain(line)) for line in lines)
    ]


def _plain(line: str) -> str:
    """Strips colours, and the clock that image builds print at the start of each line."""
    return re.sub(
        r"^(#\d+ \d+\.\d+ +)|^ {2,}(?=\S+:\d+)", "", re.sub(r"\x1b\[[0-9;]*[mK]", "", line)
    )

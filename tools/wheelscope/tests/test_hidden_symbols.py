"""A library that exports nothing still shows what it needs, with section headers and without."""

import struct
import subprocess
from pathlib import Path

import pytest
from program import Scope

SOURCE = '#include <cstdio>\n#include <cmath>\nint f(double x) { return puts("x") + lround(x); }\n'


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("library")
    source, library = folder / "f.cc", folder / "libf.so"
    source.write_text(SOURCE)
    flags = ["-shared", "-fPIC", "-fvisibility=hidden", "-fuse-ld=bfd"]
    subprocess.run(["g++", *flags, source, "-o", library], check=True)
    return library


def without_section_headers(library: Path) -> Path:
    contents = bytearray(library.read_bytes())
    struct.pack_into("<Q", contents, 40, 0)  # e_shoff
    struct.pack_into("<HHH", contents, 58, 0, 0, 0)  # e_shentsize, e_shnum, e_shstrndx
    bare = library.with_name("libbare.so")
    bare.write_bytes(contents)
    return bare


def needed(scope: Scope, library: Path) -> set[str]:
    (item,) = scope("dump", "--symbols", library)["items"]
    return {symbol["name"] for symbol in item["symbols"] if not symbol["defined"]}


def test_needs_of_a_library_that_exports_nothing(scope: Scope, library: Path) -> None:
    assert {"puts", "lround"} <= needed(scope, library)
    assert needed(scope, without_section_headers(library)) == needed(scope, library)

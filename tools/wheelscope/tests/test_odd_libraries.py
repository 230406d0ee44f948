"""Libraries that look odd but that the loader accepts: they are read completely, and not called
damaged."""

import ctypes
import struct
from pathlib import Path

import pytest
import sample_wheels
from elftools.elf.elffile import ELFFile
from program import compiled, scope

SOURCE = '#include <cstdio>\n#include <cmath>\nint f(double x) { return puts("x") + lround(x); }\n'


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("library") / "libf.so"
    flags = ("-fvisibility=hidden", "-fuse-ld=bfd", "-Wl,-rpath,$ORIGIN/libs")
    return compiled(path, SOURCE, *flags, compiler="g++")


def without_section_headers(library: Path) -> Path:
    contents = bytearray(library.read_bytes())
    struct.pack_into("<Q", contents, 40, 0)  # e_shoff
    struct.pack_into("<HHH", contents, 58, 0, 0, 0)  # e_shentsize, e_shnum, e_shstrndx
    bare = library.with_name("libbare.so")
    bare.write_bytes(contents)
    return bare


def needed(library: Path) -> set[str]:
    (item,) = scope("dump", "--symbols", library)["items"]
    return {symbol["name"] for symbol in item["symbols"] if not symbol["defined"]}


def test_needs_of_a_library_that_exports_nothing(library: Path) -> None:
    assert {"puts", "lround"} <= needed(library)
    assert needed(without_section_headers(library)) == needed(library)


def levels(file: Path) -> dict[str, str]:
    (item,) = scope("check", file, code=None)["items"]
    return {one["id"]: one["level"] for one in item["findings"]}


def test_names_behind_the_end_of_their_table(library: Path) -> None:
    """Some editors of RPATH append the text without changing DT_STRSZ."""
    contents = bytearray(library.read_bytes())
    with library.open("rb") as stream:
        dynamic = ELFFile(stream).get_section_by_name(".dynamic")
        tags = [tag.entry.d_tag for tag in dynamic.iter_tags()]
        at = dynamic["sh_offset"] + 16 * tags.index("DT_STRSZ") + 8
        (path,) = (tag.runpath for tag in dynamic.iter_tags() if tag.entry.d_tag == "DT_RUNPATH")
        end = ELFFile(stream).get_section_by_name(".dynstr").data().index(path.encode())
    struct.pack_into("<Q", contents, at, end)
    odd = library.with_name("libodd.so")
    odd.write_bytes(contents)
    ctypes.CDLL(str(odd))
    (item,) = scope("show", odd)["items"]
    assert item["elf"][0]["runpath"] == "$ORIGIN/libs"
    assert levels(odd) == {}


def test_damaged_section_headers(library: Path) -> None:
    contents = bytearray(library.read_bytes())
    struct.pack_into("<H", contents, 58, 63)  # e_shentsize
    odd = library.with_name("libsections.so")
    odd.write_bytes(contents)
    ctypes.CDLL(str(odd))
    assert levels(odd) == {"elf-sections": "warning"}


def test_broken_files_that_a_package_tests_itself_with(tmp_path: Path) -> None:
    for folder, level in (("pkg/tests/data", "note"), ("pkg/data", "error")):
        wheel = tmp_path / "pkg-1.0-py3-none-any.whl"
        broken = {f"{folder}/cut.elf": b"\x7fELF\2\1\1"}
        wheel.write_bytes(sample_wheels.wheel(wheel.name, broken))
        assert levels(wheel)["elf-broken"] == level


def test_a_wheel_without_binaries_may_speak_of_cuda(tmp_path: Path) -> None:
    """Its kernels are compiled when they are first used, or come with another wheel."""
    wheel = tmp_path / "my_cuda-1.0-py3-none-any.whl"
    wheel.write_bytes(sample_wheels.wheel(wheel.name, {"a.py": b""}, "Requires-Dist: torch\n"))
    assert "cuda-code" not in levels(wheel)


def test_one_fault_is_told_once(tmp_path: Path, module: bytes) -> None:
    """However many tags it makes false."""
    tags = "py2.py3-none-manylinux1_s390x.manylinux2014_s390x.manylinux_2_17_s390x"
    wheel = tmp_path / f"pkg-1.0-{tags}.whl"
    wheel.write_bytes(sample_wheels.wheel(wheel.name, {"pkg/sample.so": module}))
    (item,) = scope("check", wheel, code=1)["items"]
    told = [one["id"] for one in item["findings"]]
    assert told.count("tag-machine") == 1
    assert told.count("tag-platform") <= 1

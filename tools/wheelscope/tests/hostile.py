"""Makes small wheels that are built to exhaust memory or time: `python hostile.py FOLDER`.

Each exploits one liberty of a format: names may share bytes, containers may hold containers, a
length may say anything, many records may describe the same data. Everything else is correct,
including the hashes in RECORD, so any finding is about the trap.
"""

import base64
import functools
import hashlib
import struct
import sys
import zipfile
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path

import sample_wheels
from fixture_elf import (
    DT_HASH,
    DT_NEEDED,
    DT_STRSZ,
    DT_SYMTAB,
    DT_VERNEED,
    DT_VERNEEDNUM,
    Code,
    Elf,
    Symbol,
    container,
    fatbin,
    member_header,
    zstd,
)
from fixture_zip import Files, archive, patched

NAME = "pkg-1.0-py3-none-manylinux_2_28_x86_64.whl"
INFO = "pkg-1.0.dist-info"
WHEEL = b"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: py3-none-manylinux_2_28_x86_64\n"
METADATA = b"Metadata-Version: 2.1\nName: pkg\nVersion: 1.0\nRequires-Dist: torch\n"
MEGABYTE = 1 << 20
Traps = Iterator[tuple[str, bytes | Files]]  # a library, or files


def wheel(contents: bytes | Files) -> bytes:
    """Makes a wheel of files, or of one library."""
    files = contents if isinstance(contents, dict) else {"pkg/a.so": contents}
    return sample_wheels.wheel(NAME, {f"{INFO}/METADATA": METADATA, **files})


def library(**facts: object) -> bytes:
    return Elf(**facts).build()  # type: ignore[arg-type]


def device_code(section: bytes) -> bytes:
    return library(sections={".nv_fatbin": section})


def value_at(elf: bytes, tag: int) -> int:
    """Returns where the value of an entry of the dynamic table lies."""
    return elf.index(struct.pack("<Q", tag), 64 + 5 * 56) + 8


# --- Overlaps: many names in the same bytes -----------------------------------------------------
def overlapping(text: bytes, starts: Sequence[int], defined: bool = False) -> bytes:
    """Makes a library whose symbols are named by overlapping ends of one text."""
    symbols = [Symbol("", defined)] * len(starts)
    data = bytearray(library(soname=text.decode(), symbols=symbols))
    table = struct.unpack_from("<Q", data, value_at(data, DT_SYMTAB))[0]
    for number, start in enumerate(starts, 1):
        struct.pack_into("<I", data, table + 24 * number, 1 + start)
    return bytes(data)


def needing_overlapping(text: bytes, starts: Sequence[int]) -> bytes:
    """Makes a library that needs libraries of such names."""
    data = bytearray(library(needed=[text.decode(), *[""] * (len(starts) - 1)]))
    table = data.index(struct.pack("<QQ", DT_NEEDED, 1)) + 8  # the first is at the start
    for number, start in enumerate(starts):
        struct.pack_into("<Q", data, table + 16 * number, 1 + start)
    return bytes(data)


def versions_of_one_name(length: int, count: int) -> bytes:
    """Makes a library that needs many versions, all named by the same long text."""
    names = [f"V_{i}" for i in range(count)]
    data = bytearray(library(soname="a" * length, version_needs={"libc.so.6": names}))
    first = struct.unpack_from("<Q", data, value_at(data, DT_VERNEED))[0] + 16
    for i in range(count):
        struct.pack_into("<I", data, first + 16 * i + 8, 1)
    return bytes(data)


def overlaps() -> Traps:
    long = b"a" * MEGABYTE
    ends = range(0, MEGABYTE, 50)
    yield "symbol-names-overlap", overlapping(long, ends)
    yield "symbol-names-are-the-same-bytes", overlapping(long, [0] * 20_000)
    for word, name in ((b"Py_", "python"), (b"aoti_torch_", "torch"), (b"_ZN3c10", "demangled")):
        text = word * (MEGABYTE // len(word))
        starts = range(0, len(text), len(word) * 8)
        yield f"{name}-symbol-names-overlap", overlapping(text, starts)
    yield "defined-symbol-names-overlap", overlapping(long, ends, defined=True)
    yield "needed-libraries-overlap", needing_overlapping(long, ends)
    yield "version-names-overlap", versions_of_one_name(MEGABYTE, 10_000)
    one = overlapping(long, range(0, MEGABYTE, 500))
    yield "overlaps-in-many-members", {f"pkg/{i}.so": one for i in range(12)}


# --- Nesting ------------------------------------------------------------------------------------
def nested_fatbins(depth: int) -> bytes:
    """Nests fat binaries: each container holds the next ones as payloads and ends in a cut-off
    entry, so that a reader which goes on after a defect reads all entries again for each
    container."""
    total = depth * 80 + 32
    parts = []
    for i in range(depth):
        rest = total - i * 80 - 16
        parts.append(struct.pack("<IHHQ", 0xBA55ED50, 1, 16, rest))
        payload = 16 if i < depth - 1 else 0
        parts.append(
            struct.pack("<HHIQIIHHIIIQQQ", 2, 0x101, 64, payload, 0, 0, 0, 0, 80, 0, 0, 0, 0, 0)
        )
    return b"".join(parts) + b"\1" * 32


def deep_archive(depth: int) -> bytes:
    """Nests archives."""
    data = b"!<arch>\n"
    for i in range(depth):
        size = len(data)
        data = b"!<arch>\n" + member_header(f"m{i}.a/", size) + data + b"\n" * (size % 2)
    return data


def torch_if(marker: bytes) -> Files:
    return {f"{INFO}/METADATA": METADATA + b"Requires-Dist: torch ; " + marker + b"\n"}


def nesting() -> Traps:
    fatbins = nested_fatbins(20_000)
    yield "fatbins-in-fatbins", device_code(fatbins)
    yield "lone-fatbins-in-fatbins", {"pkg/a.fatbin": fatbins}
    one = device_code(fatbins)
    yield "fatbins-in-fatbins-in-many-members", {f"pkg/{i}.so": one for i in range(8)}
    yield "archives-in-archives", {"pkg/a.a": deep_archive(20_000)}
    term = b'python_version > "3"'
    yield "marker-of-many-parentheses", torch_if(b"(" * 400_000 + term + b")" * 400_000)
    yield "marker-of-many-terms", torch_if(b" and ".join([term] * 50_000))
    yield (
        "json-of-many-brackets",
        {f"{INFO}/variant.json": b"[" * 2_000_000 + b"]" * 2_000_000},
    )


# --- Lengths that lie ---------------------------------------------------------------------------
def truthful() -> bytes:
    """Makes the correct library that the lies below are derived from."""
    return library(
        symbols=[Symbol("f", version="V_1"), Symbol("g")], version_needs={"libc.so.6": ["V_1"]}
    )


def lies() -> Traps:
    good = truthful()
    sections = struct.unpack_from("<Q", good, 40)[0]
    for name, at, value in (
        ("sections-counted-elsewhere", 60, struct.pack("<H", 0)),
        ("most-sections", 60, b"\xff\xff"),
        ("most-segments", 56, b"\xff\xff"),
        ("sections-at-the-end-of-numbers", 40, b"\xff" * 8),
        ("section-names-elsewhere", 62, b"\xff\xff"),
    ):
        yield name, patched(good, at, value)
    uncounted = patched(good, 60, b"\0\0")
    yield "a-terabyte-of-sections", patched(uncounted, sections + 32, struct.pack("<Q", 1 << 40))
    for tag, name in (
        (DT_HASH, "hash-table"),
        (DT_STRSZ, "string-table-size"),
        (DT_VERNEEDNUM, "version-need-count"),
        (DT_SYMTAB, "symbol-table"),
        (DT_VERNEED, "version-needs"),
    ):
        for end, value in (("most", 0x7FFFFFFFFFFFFFFF), ("large", 1 << 32), ("start", 0)):
            yield f"{name}-{end}", patched(good, value_at(good, tag), struct.pack("<Q", value))
    hash_at = struct.unpack_from("<Q", good, value_at(good, DT_HASH))[0]
    yield "four-billion-symbols", patched(good, hash_at + 4, b"\xff\xff\xff\xff")
    code = fatbin([Code("sass", 90, b"x" * 64), Code("ptx", 90, b"y" * 64)])
    for name, at, value in (
        ("fatbin-body", 8, b"\xff" * 8),
        ("fatbin-entry-header", 20, b"\xff" * 4),
        ("fatbin-payload", 24, b"\xff" * 8),
        ("fatbin-empty-entry-header", 20, b"\0" * 4),
        ("fatbin-wrapping-payload", 24, struct.pack("<Q", 2**64 - 64)),
    ):
        yield name, device_code(patched(code, at, value))
    claim = fatbin([Code("ptx", 90, b"x" * 64, "zstd")])
    huge = patched(claim, 16 + 56, struct.pack("<Q", 1 << 30))
    yield "device-code-of-a-gigabyte", device_code(huge)
    frame = claim.index(zstd(b"x" * 64)[:4])
    both = patched(huge, frame + 5, struct.pack("<I", 1 << 30))
    yield "zstd-frame-of-a-gigabyte", device_code(both)
    header = member_header("m.o/", 9_999_999_999)
    yield "archive-member-of-ten-gigabytes", {"pkg/a.a": b"!<arch>\n" + header}


# --- Many records over the same bytes -----------------------------------------------------------
def many_sections(count: int) -> bytes:
    """Makes a library with many sections over the same device code."""
    code = fatbin([Code("sass", 90, b"x" * 8, suffix="a") for _ in range(500)])
    data = bytearray(device_code(code))
    table, named = struct.unpack_from("<Q", data, 40)[0], struct.unpack_from("<H", data, 60)[0]
    first, last = data[table + 64 : table + 128], data[table + 128 : table + 192]
    assert named == 3
    data[table + 128 :] = first * (count - 1) + last
    struct.pack_into("<HH", data, 60, count + 2, count + 1)
    return bytes(data)


def shared_member(copies: int, data: bytes) -> bytes:
    """Gives one local member many names in the central directory."""
    one = archive({f"pkg/{0:05}.so": data})
    at = one.index(b"PK\x01\x02")
    header = one[at:-22]
    headers = b"".join(header.replace(b"00000", f"{i:05}".encode()) for i in range(copies))
    end = struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, copies, copies, len(headers), at, 0)
    return one[:at] + headers + end


def many() -> Traps:
    yield "many-sections-over-the-same-bytes", many_sections(60_000)
    yield "many-empty-members", {f"pkg/{i:05}.py": b"" for i in range(60_000)}
    tiny = library(sections={})
    yield "many-libraries", {f"pkg/{i:05}.so": tiny for i in range(5_000)}
    names = b".".join(b"a" + str(i).encode() for i in range(1_000))
    yield "a-billion-tags", {f"{INFO}/WHEEL": WHEEL + b"Tag: " + b"-".join([names] * 3) + b"\n"}
    dist = b"".join(b"Requires-Dist: a%d (>=1)\n" % i for i in range(400_000))
    yield "many-requirements", {f"{INFO}/METADATA": METADATA + dist}
    yield "many-fatbin-entries", device_code(container(Code("sass", 90, b"").build() * 200_000))
    ptx = b".version 8.4\n.target sm_%d\n.address_size 64\n"
    yield "many-loose-ptx-files", {f"pkg/{i}.ptx": ptx % (50 + i) for i in range(5_000)}
    empty = member_header("m.o/", 0)
    yield "many-empty-archive-members", {"pkg/a.a": b"!<arch>\n" + empty * 300_000}


# --- Bombs: much from few bytes -----------------------------------------------------------------
@functools.cache
def digest(start: bytes, zeros: int) -> str:
    hashed = hashlib.sha256(start)
    for _ in range(zeros // MEGABYTE):
        hashed.update(bytes(MEGABYTE))
    return base64.urlsafe_b64encode(hashed.digest()).decode().rstrip("=")


def bomb(starts: Files, size: int) -> bytes:
    """Makes a wheel with members that each go on with this number of zeros."""
    members = {f"{INFO}/METADATA": (METADATA, 0), f"{INFO}/WHEEL": (WHEEL, 0)}
    members |= {name: (start, size) for name, start in starts.items()}
    lines = [
        f"{name},sha256={digest(start, zeros)},{len(start) + zeros}\n"
        for name, (start, zeros) in members.items()
    ]
    record = "".join([*lines, f"{INFO}/RECORD,,\n"]).encode()
    members.setdefault(f"{INFO}/RECORD", (record, 0))
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as zip_file:
        for name, (start, zeros) in members.items():
            with zip_file.open(name, "w") as member:
                member.write(start)
                for _ in range(zeros // MEGABYTE):
                    member.write(bytes(MEGABYTE))
    return buffer.getvalue()


def bombs() -> Iterator[tuple[str, bytes]]:
    start = library(symbols=[Symbol("f")])
    yield "library-that-inflates-to-a-gigabyte", bomb({"pkg/a.so": start}, 1024 * MEGABYTE)
    members = {f"pkg/{i}.so": start for i in range(4)}  # each fits into memory, three do not
    yield "many-members-that-inflate", bomb(members, 130 * MEGABYTE)
    for kind, name, text in (
        ("metadata", f"{INFO}/METADATA", METADATA),
        ("record", f"{INFO}/RECORD", b"a,,\n"),
        ("ptx", "pkg/a.ptx", b".version 8.4\n.target sm_80\n"),
        ("fatbin", "pkg/a.fatbin", fatbin([])),
        ("archive", "pkg/a.a", b"!<arch>\n"),
    ):
        yield f"{kind}-that-inflates", bomb({name: text}, 400 * MEGABYTE)


def family() -> Iterator[tuple[str, bytes]]:
    for traps in (overlaps, nesting, lies, many):
        for name, contents in traps():
            yield name, wheel(contents)
    yield "many-names-for-one-member", shared_member(5_000, many_sections(100).ljust(MEGABYTE))
    yield from bombs()


def write(folder: Path) -> list[Path]:
    """Writes each file into a folder of its own, as a wheel's file name says what it is."""
    paths = []
    for name, data in family():
        path = folder / name / NAME
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        paths.append(path)
    return paths


if __name__ == "__main__":
    for path in write(Path(sys.argv[1])):
        print(f"{path.stat().st_size:>10,}  {path.parent.name}")

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

from fixture_elf import DT_VERNEED, DT_VERNEEDNUM, Code, Elf, Symbol, fatbin, zstd
from fixture_zip import archive, patched

INFO = "pkg-1.0.dist-info"
WHEEL = b"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: py3-none-manylinux_2_28_x86_64\n"
METADATA = b"Metadata-Version: 2.1\nName: pkg\nVersion: 1.0\nRequires-Dist: torch\n"
MEGABYTE = 1 << 20


def wheel(files: dict[str, bytes], metadata: bytes = METADATA, tags: bytes = WHEEL) -> bytes:
    claims = {f"{INFO}/METADATA": metadata, f"{INFO}/WHEEL": tags}
    record = recorded({name: (data, 0) for name, data in {**files, **claims}.items()})
    return archive({**files, **claims, f"{INFO}/RECORD": record})


def recorded(members: dict[str, tuple[bytes, int]]) -> bytes:
    """Returns RECORD for members that each consist of some bytes and a number of zeros."""
    lines = [
        f"{name},sha256={digest(start, zeros)},{len(start) + zeros}\n"
        for name, (start, zeros) in members.items()
    ]
    return "".join([*lines, f"{INFO}/RECORD,,\n"]).encode()


@functools.cache
def digest(start: bytes, zeros: int) -> str:
    hashed = hashlib.sha256(start)
    for _ in range(zeros // MEGABYTE):
        hashed.update(bytes(MEGABYTE))
    return base64.urlsafe_b64encode(hashed.digest()).decode().rstrip("=")


def library(**facts: object) -> bytes:
    return Elf(**facts).build()  # type: ignore[arg-type]


# --- Overlaps: many names in the same bytes -----------------------------------------------------
DYNSTR, DYNSYM, NEEDED, STRSZ, HASH = 5, 6, 1, 10, 4


def overlapping(text: bytes, starts: Sequence[int], symbols: bool, defined: bool = False) -> bytes:
    """Makes a library whose symbols, or needed libraries, are named by overlapping ends of one
    text."""
    header, segments = 64, 2 * 56
    strings = b"\0" + text + b"\0"
    strings_at = header + segments
    table_at = strings_at + len(strings) + -(strings_at + len(strings)) % 8
    entries: list[tuple[int, int]] = []
    table = b"\0" * 24
    if symbols:
        table += b"".join(struct.pack("<IBBHQQ", 1 + at, 0x12, 0, defined, 0, 0) for at in starts)
    else:
        entries += [(NEEDED, 1 + at) for at in starts]
    count = len(table) // 24
    hash_at = table_at + len(table)
    hashes = struct.pack("<IIII", 1, count, 0, 0)
    dynamic_at = hash_at + len(hashes)
    entries += [(DYNSTR, strings_at), (STRSZ, len(strings)), (DYNSYM, table_at), (HASH, hash_at)]
    dynamic = b"".join(struct.pack("<QQ", *entry) for entry in [*entries, (0, 0)])
    size = dynamic_at + len(dynamic)
    ident = b"\x7fELF\x02\x01\x01" + b"\0" * 9
    head = ident + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, header, 0, 0, header, 56, 2, 64, 0, 0)
    load = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, size, size, 8)
    table_of = struct.pack(
        "<IIQQQQQQ", 2, 6, dynamic_at, dynamic_at, dynamic_at, len(dynamic), len(dynamic), 8
    )
    body = (head + load + table_of + strings).ljust(table_at, b"\0")
    return body + table + hashes + dynamic


def versions_of_one_name(length: int, count: int) -> bytes:
    """Makes a library that needs many versions, all named by the same long text."""
    names = [f"V_{i}" for i in range(count)]
    good = library(soname="a" * length, version_needs={"libc.so.6": names})
    entry = good.index(struct.pack("<Q", DT_VERNEED))
    first = struct.unpack_from("<Q", good, entry + 8)[0] + 16
    data = bytearray(good)
    for i in range(count):
        struct.pack_into("<I", data, first + 16 * i + 8, 1)
    return bytes(data)


def overlaps() -> Iterator[tuple[str, bytes]]:
    long = b"a" * MEGABYTE
    ends = range(0, MEGABYTE, 50)
    yield "symbol-names-overlap", wheel({"pkg/a.so": overlapping(long, ends, symbols=True)})
    yield (
        "symbol-names-are-the-same-bytes",
        wheel({"pkg/a.so": overlapping(long, [0] * 20_000, symbols=True)}),
    )
    for word, name in ((b"Py_", "python"), (b"aoti_torch_", "torch"), (b"_ZN3c10", "demangled")):
        text = word * (MEGABYTE // len(word))
        starts = range(0, len(text), len(word) * 8)
        library = overlapping(text, starts, symbols=True)
        yield f"{name}-symbol-names-overlap", wheel({"pkg/a.so": library})
    yield (
        "defined-symbol-names-overlap",
        wheel({"pkg/a.so": overlapping(long, ends, symbols=True, defined=True)}),
    )
    yield ("needed-libraries-overlap", wheel({"pkg/a.so": overlapping(long, ends, symbols=False)}))
    yield "version-names-overlap", wheel({"pkg/a.so": versions_of_one_name(MEGABYTE, 10_000)})
    yield (
        "overlaps-in-many-members",
        wheel({f"pkg/{i}.so": overlapping(long, range(0, MEGABYTE, 500), True) for i in range(12)}),
    )


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
        header = f"{f'm{i}.a/':<16}{0:<12}{0:<6}{0:<6}{644:<8}{size:<10}`\n".encode()
        data = b"!<arch>\n" + header + data + b"\n" * (size % 2)
    return data


def nesting() -> Iterator[tuple[str, bytes]]:
    sections = {".nv_fatbin": nested_fatbins(20_000)}
    yield "fatbins-in-fatbins", wheel({"pkg/a.so": library(sections=sections)})
    yield "lone-fatbins-in-fatbins", wheel({"pkg/a.fatbin": nested_fatbins(20_000)})
    yield (
        "fatbins-in-fatbins-in-many-members",
        wheel({f"pkg/{i}.so": library(sections=sections) for i in range(8)}),
    )
    yield "archives-in-archives", wheel({"pkg/a.a": deep_archive(20_000)})
    deep = b"(" * 400_000 + b'python_version > "3"' + b")" * 400_000
    yield (
        "marker-of-many-parentheses",
        wheel({}, METADATA + b"Requires-Dist: torch ; " + deep + b"\n"),
    )
    chain = b" and ".join([b'python_version > "3"'] * 50_000)
    yield "marker-of-many-terms", wheel({}, METADATA + b"Requires-Dist: torch ; " + chain + b"\n")
    yield (
        "json-of-many-brackets",
        wheel({f"{INFO}/variant.json": b"[" * 2_000_000 + b"]" * 2_000_000}),
    )


# --- Lengths that lie ---------------------------------------------------------------------------
def truthful() -> bytes:
    """Makes the correct library that the lies below are derived from."""
    return library(
        symbols=[Symbol("f", version="V_1"), Symbol("g")], version_needs={"libc.so.6": ["V_1"]}
    )


def lies() -> Iterator[tuple[str, bytes]]:
    good = truthful()
    header = struct.unpack_from("<QQ", good, 32)  # where the segments and the sections lie
    for name, at, value in (
        ("sections-counted-elsewhere", 60, struct.pack("<H", 0)),
        ("most-sections", 60, b"\xff\xff"),
        ("most-segments", 56, b"\xff\xff"),
        ("sections-at-the-end-of-numbers", 40, b"\xff" * 8),
        ("section-names-elsewhere", 62, b"\xff\xff"),
    ):
        yield name, wheel({"pkg/a.so": patched(good, at, value)})
    first_size = patched(patched(good, 60, b"\0\0"), header[1] + 32, struct.pack("<Q", 1 << 40))
    yield "a-terabyte-of-sections", wheel({"pkg/a.so": first_size})
    for tag, name in (
        (HASH, "hash-table"),
        (STRSZ, "string-table-size"),
        (DT_VERNEEDNUM, "version-need-count"),
        (DYNSYM, "symbol-table"),
        (DT_VERNEED, "version-needs"),
    ):
        at = good.index(struct.pack("<Q", tag), 64 + 5 * 56)
        for end, value in (("most", 0x7FFFFFFFFFFFFFFF), ("large", 1 << 32), ("start", 0)):
            lie = patched(good, at + 8, struct.pack("<Q", value))
            yield f"{name}-{end}", wheel({"pkg/a.so": lie})
    hash_at = struct.unpack_from("<Q", good, good.index(struct.pack("<Q", HASH), 344) + 8)[0]
    yield (
        "four-billion-symbols",
        wheel({"pkg/a.so": patched(good, hash_at + 4, b"\xff\xff\xff\xff")}),
    )
    code = fatbin([Code("sass", 90, b"x" * 64), Code("ptx", 90, b"y" * 64)])
    for name, at, value in (
        ("fatbin-body", 8, b"\xff" * 8),
        ("fatbin-entry-header", 20, b"\xff" * 4),
        ("fatbin-payload", 24, b"\xff" * 8),
        ("fatbin-empty-entry-header", 20, b"\0" * 4),
        ("fatbin-wrapping-payload", 24, struct.pack("<Q", 2**64 - 64)),
    ):
        sections = {".nv_fatbin": patched(code, at, value)}
        yield name, wheel({"pkg/a.so": library(sections=sections)})
    frame = zstd(b"x" * 64)
    claim = fatbin([Code("ptx", 90, b"x" * 64, "zstd")])
    at = claim.index(frame[:4])
    huge = patched(claim, 16 + 56, struct.pack("<Q", 1 << 30))
    yield "device-code-of-a-gigabyte", wheel({"pkg/a.so": library(sections={".nv_fatbin": huge})})
    both = patched(huge, at + 5, struct.pack("<I", 1 << 30))
    yield "zstd-frame-of-a-gigabyte", wheel({"pkg/a.so": library(sections={".nv_fatbin": both})})
    member = f"{'m.o/':<16}{0:<12}{0:<6}{0:<6}{644:<8}{9999999999:<10}`\n".encode()
    yield "archive-member-of-ten-gigabytes", wheel({"pkg/a.a": b"!<arch>\n" + member})


# --- Many records over the same bytes -----------------------------------------------------------
def many_sections(count: int) -> bytes:
    code = fatbin([Code("sass", 90, b"x" * 8, suffix="a") for _ in range(500)])
    names = b"\0.nv_fatbin\0.shstrtab\0"
    code_at, names_at = 64, 64 + len(code)
    table_at = names_at + len(names) + -(names_at + len(names)) % 8
    one = struct.pack("<IIQQQQIIQQ", 1, 1, 0, 0, code_at, len(code), 0, 0, 1, 0)
    last = struct.pack("<IIQQQQIIQQ", 12, 3, 0, 0, names_at, len(names), 0, 0, 1, 0)
    ident = b"\x7fELF\x02\x01\x01" + b"\0" * 9
    total = count + 2
    head = ident + struct.pack(
        "<HHIQQQIHHHHHH", 3, 62, 1, 0, 0, table_at, 0, 64, 56, 0, 64, total, total - 1
    )
    return (head + code + names).ljust(table_at, b"\0") + b"\0" * 64 + one * count + last


def shared_member(copies: int, data: bytes) -> bytes:
    """Gives one local member many names in the central directory."""
    one = archive({f"pkg/{0:05}.so": data})
    at = one.index(b"PK\x01\x02")
    header = one[at:-22]
    headers = b"".join(header.replace(b"00000", f"{i:05}".encode()) for i in range(copies))
    end = struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, copies, copies, len(headers), at, 0)
    return one[:at] + headers + end


def many() -> Iterator[tuple[str, bytes]]:
    yield "many-sections-over-the-same-bytes", wheel({"pkg/a.so": many_sections(60_000)})
    yield "many-names-for-one-member", shared_member(5_000, many_sections(100).ljust(MEGABYTE))
    yield "many-empty-members", wheel({f"pkg/{i:05}.py": b"" for i in range(60_000)})
    tiny = library(sections={})
    yield "many-libraries", wheel({f"pkg/{i:05}.so": tiny for i in range(5_000)})
    names = [b"a" + str(i).encode() for i in range(1_000)]
    product = b"Tag: " + b"-".join([b".".join(names)] * 3) + b"\n"
    yield "a-billion-tags", wheel({}, tags=WHEEL + product)
    dist = b"".join(b"Requires-Dist: a%d (>=1)\n" % i for i in range(400_000))
    yield "many-requirements", wheel({}, METADATA + dist)
    entry = Code("sass", 90, b"").build()
    body = entry * 200_000
    container = struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body
    yield "many-fatbin-entries", wheel({"pkg/a.so": library(sections={".nv_fatbin": container})})
    ptx = b".version 8.4\n.target sm_%d\n.address_size 64\n"
    yield "many-loose-ptx-files", wheel({f"pkg/{i}.ptx": ptx % (50 + i) for i in range(5_000)})
    header = f"{'m.o/':<16}{0:<12}{0:<6}{0:<6}{644:<8}{0:<10}`\n".encode()
    yield "many-empty-archive-members", wheel({"pkg/a.a": b"!<arch>\n" + header * 300_000})


# --- Bombs: much from few bytes -----------------------------------------------------------------
def bomb(names_and_starts: dict[str, bytes], size: int) -> bytes:
    claims = {f"{INFO}/METADATA": METADATA, f"{INFO}/WHEEL": WHEEL}
    members = {name: (data, 0) for name, data in claims.items()}
    members |= {name: (start, size) for name, start in names_and_starts.items()}
    if f"{INFO}/RECORD" not in members:
        members[f"{INFO}/RECORD"] = (recorded(members), 0)
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
    yield (
        "many-members-that-inflate",
        bomb({f"pkg/{i}.so": start for i in range(16)}, 160 * MEGABYTE),
    )
    yield "metadata-that-inflates", bomb({f"{INFO}/METADATA": METADATA}, 400 * MEGABYTE)
    yield "record-that-inflates", bomb({f"{INFO}/RECORD": b"a,,\n"}, 400 * MEGABYTE)
    yield "ptx-that-inflates", bomb({"pkg/a.ptx": b".version 8.4\n.target sm_80\n"}, 400 * MEGABYTE)
    yield "fatbin-that-inflates", bomb({"pkg/a.fatbin": fatbin([])}, 400 * MEGABYTE)
    yield "archive-that-inflates", bomb({"pkg/a.a": b"!<arch>\n"}, 400 * MEGABYTE)


def family() -> Iterator[tuple[str, bytes]]:
    for part in (overlaps, nesting, lies, many, bombs):
        yield from part()


def write(folder: Path) -> list[Path]:
    """Writes each file into a folder of its own, as a wheel's file name says what it is."""
    paths = []
    for name, data in family():
        path = folder / name / "pkg-1.0-py3-none-manylinux_2_28_x86_64.whl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        paths.append(path)
    return paths


if __name__ == "__main__":
    for path in write(Path(sys.argv[1])):
        print(f"{path.stat().st_size:>10,}  {path.parent.name}")

"""Writes zip archives: sound ones, and ones with one defect each."""

import struct
import zipfile
from collections.abc import Iterator
from io import BytesIO

Files = dict[str, bytes]


def archive(files: Files, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as zip_file:
        for name, data in files.items():
            zip_file.writestr(zipfile.ZipInfo(name), data, method)
    return buffer.getvalue()


def patched(data: bytes, at: int, value: bytes) -> bytes:
    return data[:at] + value + data[at + len(value) :]


def zip_files() -> Iterator[tuple[str, bytes]]:
    good = archive({"a.txt": b"hello " * 100, "b/": b"", "c.txt": b"world"})
    directory = good.index(b"PK\x01\x02")
    yield "good.zip", good
    yield "empty.zip", archive({})
    yield "empty-file.zip", b""
    yield "stored.zip", archive({"a.txt": b"hello"}, zipfile.ZIP_STORED)
    yield "comment.zip", good[:-2] + struct.pack("<H", 5) + b"hello"
    yield "prefix.zip", b"#!/bin/sh\n" + good
    yield "truncated.zip", good[:-30]
    yield "wrong-crc.zip", patched(patched(good, 14, b"\0\0\0\0"), directory + 16, b"\0\0\0\0")
    yield "crc-differs-in-local-header.zip", patched(good, 14, b"\0\0\0\0")
    yield "method-differs-in-local-header.zip", patched(good, 8, b"\0\0")
    yield "size-differs-in-local-header.zip", patched(good, 22, b"\1\0\0\0")
    yield "encrypted.zip", patched(good, directory + 8, b"\x01\0")
    yield "unknown-method.zip", patched(patched(good, 8, b"\x63\0"), directory + 10, b"\x63\0")
    yield "damaged-data.zip", patched(good, 35, b"\xff\xff\xff\xff")
    yield "inflates-to-less.zip", sized(good, 700)
    yield "inflates-to-more.zip", sized(good, 100)
    yield "bomb.zip", sized(good, 0xFFFFFFF0)
    yield "no-local-header.zip", patched(good, 0, b"XX")
    yield "other-name-in-local-header.zip", patched(good, 30, b"z")
    yield (
        "local-header-out-of-range.zip",
        patched(good, directory + 42, struct.pack("<I", 0x7FFFFFFF)),
    )
    yield "overlap.zip", overlap()
    yield (
        "broken-second-central-header.zip",
        patched(good, good.index(b"PK\x01\x02", directory + 4), b"XXXX"),
    )
    yield "wrong-count.zip", patched(good, len(good) - 12, struct.pack("<H", 9))
    yield "directory-out-of-range.zip", patched(good, len(good) - 6, struct.pack("<I", 0x7FFFFFFF))
    for defect, name in {
        "traversal": "../x.txt",
        "absolute": "/etc/x",
        "drive": "c:/x",
        "backslash": "a\\b",
    }.items():
        yield f"{defect}.zip", renamed(name)
    yield "duplicate.zip", archive({"a": b"1", "b": b"2"}).replace(b"b", b"a")
    yield "zip64.zip", zip64()
    yield "zip64-broken.zip", zip64()[:-22] + b"PK\x06\x07" + b"\xff" * 16 + zip64()[-22:]
    yield "data-descriptor.zip", streamed()


def sized(data: bytes, size: int) -> bytes:
    """Makes the first member claim this size in both of its headers."""
    directory, value = data.index(b"PK\x01\x02"), struct.pack("<I", size)
    return patched(patched(data, 22, value), directory + 24, value)


def renamed(name: str) -> bytes:
    placeholder = "p" * len(name)
    return archive({placeholder: b"data"}).replace(placeholder.encode(), name.encode())


def overlap() -> bytes:
    """Puts the second member inside the data of the first."""
    inner = archive({"b.txt": b"inner"}, zipfile.ZIP_STORED)
    record = inner[: inner.index(b"PK\x01\x02")]
    outer = archive({"a.txt": record}, zipfile.ZIP_STORED)
    at = outer.rindex(b"PK\x01\x02")
    header = patched(inner[len(record) : -22], 42, struct.pack("<I", outer.index(record)))
    headers = outer[at:-22] + header
    end = struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, 2, 2, len(headers), at, 0)
    return outer[:at] + headers + end


def zip64() -> bytes:
    buffer = BytesIO()
    with (
        zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as zip_file,
        zip_file.open("a.txt", "w", force_zip64=True) as member,
    ):
        member.write(b"hello " * 100)
    data = buffer.getvalue()
    directory, end = data.index(b"PK\x01\x02"), data.index(b"PK\x05\x06")
    header = data[directory:end]
    sizes = struct.unpack_from("<II", header, 20)
    extra = struct.pack("<HHQQ", 1, 16, sizes[1], sizes[0])
    header = patched(patched(header, 20, b"\xff" * 8), 30, struct.pack("<H", len(extra))) + extra
    end64 = struct.pack("<IQHHIIQQQQ", 0x06064B50, 44, 45, 45, 0, 0, 1, 1, len(header), directory)
    locator = struct.pack("<IIQI", 0x07064B50, 0, directory + len(header), 1)
    end_record = struct.pack(
        "<IHHHHIIH", 0x06054B50, 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0
    )
    return data[:directory] + header + end64 + locator + end_record


def streamed() -> bytes:
    """Puts sizes and CRC after the data, as a writer to a pipe does."""

    class Pipe(BytesIO):
        def seekable(self) -> bool:
            return False

        def tell(self) -> int:
            raise OSError

    pipe = Pipe()
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as zip_file:
        zip_file.writestr("a.txt", b"hello " * 100)
    return pipe.getvalue()

"""Writes the test files of wheelscope, each named for its defect: `python fixtures.py FOLDER`."""

import base64
import hashlib
import struct
import sys
import zipfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

from fixture_elf import Code, Elf, Symbol, fatbin

Files = dict[str, bytes]
PTX = b".version 8.4\n.target sm_90\n.address_size 64\n\0"
CUBIN = b"\x7fELF cubin" * 20

CLAIMS_CUDA = """\
Requires-Python: >=3.10
Requires-Dist: torch>=2.10
Classifier: Environment :: GPU :: NVIDIA CUDA :: 12
"""
LIBC_NEEDS = {"libc.so.6": ["GLIBC_2.17", "GLIBC_2.27"], "libstdc++.so.6": ["GLIBCXX_3.4.21"]}


def extension(**changes: object) -> Elf:
    """A library like ours: stable torch ABI, device code, hardened."""
    fields: dict[str, object] = {
        "needed": ["libtorch.so", "libstdc++.so.6", "libc.so.6"],
        "symbols": [
            Symbol("memcpy", version="GLIBC_2.17"),
            Symbol("__stack_chk_fail", version="GLIBC_2.17"),
            Symbol("torch_call_dispatcher"),
            Symbol("aoti_torch_get_current_cuda_stream", weak=True),
            Symbol("my_add", defined=True),
        ],
        "version_needs": LIBC_NEEDS,
        "sections": {
            ".rodata": b"\0hello\0",
            ".nv_fatbin": fatbin(
                [
                    Code("sass", 80, CUBIN, "zstd"),
                    Code("sass", 90, CUBIN, "lz4", "a"),
                    Code("ptx", 90, PTX, "lz4"),
                ]
            ),
        },
        "bind_now": True,
        "relro": True,
    }
    return Elf(**{**fields, **changes})  # type: ignore[arg-type]


def torch_libraries(**changes: object) -> Files:
    cpu = Elf(
        soname="libtorch_cpu.so",
        symbols=[Symbol("torch_call_dispatcher", defined=True)],
        needed=["libc10.so"],
    )
    c10 = Elf(soname="libc10.so", symbols=[Symbol("_ZN3c105ErrorD1Ev", defined=True)])
    torch = Elf(soname="libtorch.so", needed=["libtorch_cpu.so"])
    libraries = {"libtorch.so": torch, "libtorch_cpu.so": cpu, "libc10.so": c10, **changes}
    return {f"torch/lib/{name}": elf.build() for name, elf in libraries.items()}  # type: ignore[attr-defined]


def elf_files() -> Iterator[tuple[str, bytes]]:
    good = extension()
    yield "good.so", good.build()
    yield "gnu-hash.so", extension(gnu_hash=True).build()
    yield "no-section-headers.so", patched(patched(good.build(), 40, b"\0" * 8), 60, b"\0" * 4)
    yield "32-bit.so", extension(machine="i686", wide=False).build()
    yield "big-endian.so", extension(machine="s390x", big_endian=True).build()
    yield "big-endian-32-bit.so", extension(machine="i686", wide=False, big_endian=True).build()
    yield "executable-stack.so", extension(executable_stack=True, text_relocations=True).build()
    yield "program", extension(interpreter="/lib64/ld-linux-x86-64.so.2").build()
    yield (
        "object.o",
        Elf(type=1, sections={"__nv_relfatbin": fatbin([Code("sass", 75, CUBIN)])}).build(),
    )
    yield (
        "versions.so",
        Elf(
            soname="libv.so.1",
            version_definitions=["V_1", "V_2"],
            symbols=[
                Symbol("f", defined=True, version="V_2"),
                Symbol("f", defined=True, version="V_1", hidden=True),
            ],
        ).build(),
    )
    yield "kernel.cubin", Elf(machine="cuda", type=2, flags=80).build()
    data = bytearray(good.build())
    yield "too-short-for-header.so", bytes(data[:40])
    yield "truncated.so", bytes(data[: len(data) // 2])
    yield "empty-class.so", bytes(data[:4]) + b"\x07" + bytes(data[5:])
    yield "unknown-byte-order.so", bytes(data[:5]) + b"\x09" + bytes(data[6:])
    far = bytearray(data)
    far[32:40] = struct.pack("<Q", 1 << 60)
    yield "program-headers-out-of-range.so", bytes(far)
    far = bytearray(data)
    far[40:48] = struct.pack("<Q", len(data) + 1)
    yield "section-headers-out-of-range.so", bytes(far)
    far = bytearray(data)
    far[54:56] = struct.pack("<H", 7)
    yield "program-header-size.so", bytes(far)


def fatbin_files() -> Iterator[tuple[str, bytes]]:
    codes = [
        Code("sass", 100, CUBIN, "zstd", "f"),
        Code("ptx", 120, PTX, "zstd", isa=(8, 8)),
        Code("sass", 75, CUBIN),
    ]
    good = fatbin(codes)
    yield "good.fatbin", good + b"\0" * 8 + good
    yield "truncated-body.fatbin", good[: len(good) - 30]
    yield "foreign-bytes-between.fatbin", good + b"garbage." + good
    yield "wrong-version.fatbin", good[:4] + b"\x09\0" + good[6:]
    yield "entry-header-too-small.fatbin", good[:20] + struct.pack("<I", 8) + good[24:]
    yield "payload-out-of-range.fatbin", good[:24] + struct.pack("<Q", 1 << 62) + good[32:]
    yield "damaged-zstd.fatbin", good[:84] + b"\xff" * 12 + good[96:]
    bomb = bytearray(fatbin([Code("sass", 80, CUBIN, "lz4")]))
    bomb[16 + 56 : 16 + 64] = struct.pack("<Q", 1 << 50)
    yield "bomb.fatbin", bytes(bomb)
    unknown = bytearray(fatbin([Code("sass", 80, CUBIN, "lz4")]))
    unknown[16 + 40 : 16 + 48] = struct.pack("<Q", 0)
    yield "unknown-compression.fatbin", bytes(unknown)


def record(files: Files, dist_info: str) -> bytes:
    lines = []
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(data)}")
    return "\n".join([*lines, f"{dist_info}/RECORD,,", ""]).encode()


def wheel(
    files: Files,
    tag: str = "py3-none-manylinux_2_28_x86_64",
    version: str = "1.0",
    metadata: str = CLAIMS_CUDA,
    purelib: str = "false",
    record_text: bytes | None = None,
    stored: bool = False,
) -> bytes:
    dist_info = f"pkg-{version}.dist-info"
    files = {
        **files,
        f"{dist_info}/METADATA": f"Metadata-Version: 2.4\nName: pkg\nVersion: {version}\n"
        f"Summary: A test\nLicense-Expression: MIT\n{metadata}\ntext".encode(),
        f"{dist_info}/WHEEL": "Wheel-Version: 1.0\nGenerator: fixtures\n"
        f"Root-Is-Purelib: {purelib}\nTag: {tag}\n".encode(),
    }
    files[f"{dist_info}/RECORD"] = record(files, dist_info) if record_text is None else record_text
    return archive(files, zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED)


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
    yield "encrypted.zip", patched(good, directory + 8, b"\x01\0")
    yield "unknown-method.zip", patched(good, directory + 10, b"\x63\0")
    yield "damaged-data.zip", patched(good, 35, b"\xff\xff\xff\xff")
    yield "inflates-to-less.zip", patched(good, directory + 24, struct.pack("<I", 700))
    yield "inflates-to-more.zip", patched(good, directory + 24, struct.pack("<I", 100))
    yield "bomb.zip", patched(good, directory + 24, struct.pack("<I", 0xFFFFFFF0))
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


def renamed(name: str) -> bytes:
    placeholder = "p" * len(name)
    return archive({placeholder: b"data"}).replace(placeholder.encode(), name.encode())


def overlap() -> bytes:
    """The second member lies inside the data of the first."""
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
    """Sizes and CRC after the data, as a writer to a pipe leaves them."""

    class Pipe(BytesIO):
        def seekable(self) -> bool:
            return False

        def tell(self) -> int:
            raise OSError

    pipe = Pipe()
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as zip_file:
        zip_file.writestr("a.txt", b"hello " * 100)
    return pipe.getvalue()


def wheel_files() -> Iterator[tuple[str, bytes]]:
    code = {"pkg/__init__.py": b"import torch\n"}
    library = {"pkg/_C.so": extension().build()}

    def name(folder: str, tag: str = "py3-none-manylinux_2_28_x86_64", version: str = "1.0") -> str:
        return f"{folder}/pkg-{version}-{tag}.whl"

    def with_elf(**changes: object) -> Files:
        return {**code, "pkg/_C.so": extension(**changes).build()}

    yield name("good"), wheel({**code, **library})
    yield name("good-stored"), wheel({**code, **library}, stored=True)
    yield name("no-device-code"), wheel(with_elf(sections={".rodata": b"\0"}))
    yield (
        name("false-tag", "py3-none-manylinux_2_17_x86_64"),
        wheel({**code, **library}, tag="py3-none-manylinux_2_17_x86_64"),
    )
    yield name("tags-differ"), wheel({**code, **library}, tag="py3-none-any")
    yield (
        name("any-with-binaries", "py3-none-any"),
        wheel({**code, **library}, tag="py3-none-any", purelib="true"),
    )
    yield (
        name("too-new-platform", "py3-none-linux_x86_64"),
        wheel(
            with_elf(version_needs={"libc.so.6": ["GLIBC_2.17", "GLIBC_2.99"]}),
            tag="py3-none-linux_x86_64",
        ),
    )
    yield name("other-machine"), wheel(with_elf(machine="aarch64"))
    yield (
        name("record-wrong-hash"),
        wheel(
            {**code, **library},
            record_text=b"pkg/_C.so,sha256=AAAA,4\npkg-1.0.dist-info/RECORD,,\n",
        ),
    )
    yield (
        name("record-bad-lines"),
        wheel(
            {**code, **library},
            record_text=b'"pkg/""x"".py",sha256=AA,1\npkg/__init__.py,md5=AA,13\npkg/__init__.py,,\r\npkg-1.0.dist-info/RECORD,,\n',
        ),
    )
    yield name("no-record"), archive({**code, **library})
    yield (
        name("record-wrong-size"),
        wheel(code, record_text=record(code, "pkg-1.0.dist-info").replace(b",13", b",14")),
    )
    yield (
        name("cxx-abi"),
        wheel(
            with_elf(
                symbols=[
                    Symbol("_ZN3c105ErrorC1ESs"),
                    Symbol("_ZN2at4_ops3add4callERKNS_6TensorE"),
                    Symbol("torch_call_dispatcher"),
                ]
            )
        ),
    )
    yield (
        name("cxx-abi-of-2.15", version="1.0+cu130torch2.15"),
        wheel(with_elf(symbols=[Symbol("_ZN3c105ErrorC1ESs")]), version="1.0+cu130torch2.15"),
    )
    yield name("torch-symbol-unknown"), wheel(with_elf(symbols=[Symbol("torch_no_such_function")]))
    yield (
        name("torch-too-new"),
        wheel(
            with_elf(
                symbols=[Symbol("torch_call_dispatcher"), Symbol("torch_stream_native_handle")]
            )
        ),
    )
    yield (
        name("dynamic-cudart-13"),
        wheel(with_elf(needed=["libtorch.so", "libcudart.so.13", "libc.so.6"])),
    )
    yield (
        name("needs-cuda-shim"),
        wheel(with_elf(symbols=[Symbol("aoti_torch_get_current_cuda_stream")])),
    )
    yield (
        name("weak-hardening"),
        wheel(
            with_elf(
                bind_now=False,
                relro=False,
                executable_stack=True,
                text_relocations=True,
                symbols=[Symbol("my_add", defined=True)],
            )
        ),
    )
    yield (
        name("debug-and-paths"),
        wheel(
            with_elf(
                sections={
                    ".rodata": b"\0/home/builder/pkg/ops.cpp\0x/home/no\0",
                    ".debug_info": b"x",
                    ".symtab": b"",
                    ".nv_fatbin": fatbin([Code("sass", 80, CUBIN)]),
                },
                rpath="/usr/local/lib:$ORIGIN/../lib",
                needed=["libtorch.so", "libfoo.so.1", "libc.so.6"],
            )
        ),
    )
    module = [
        Symbol("PyInit__C", defined=True),
        Symbol("PyModule_Create2"),
        Symbol("PyObject_GetBuffer"),
    ]
    yield (
        name("abi3", "cp310-abi3-manylinux_2_28_x86_64"),
        wheel(
            {**code, "pkg/_C.abi3.so": extension(symbols=module).build()},
            tag="cp310-abi3-manylinux_2_28_x86_64",
        ),
    )
    private = [*module[:2], Symbol("_PyObject_GetDictPtr")]
    yield (
        name("one-python", "cp311-cp311-manylinux_2_28_x86_64"),
        wheel(
            {**code, "pkg/_C.cpython-311-x86_64-linux-gnu.so": extension(symbols=private).build()},
            tag="cp311-cp311-manylinux_2_28_x86_64",
        ),
    )
    yield (
        name("one-python-tagged-none"),
        wheel({**code, "pkg/_C.so": extension(symbols=private).build()}),
    )
    yield (
        name("one-python-unnamed", "cp312-cp312-manylinux_2_28_x86_64"),
        wheel(
            {**code, "pkg/_C.so": extension(symbols=private).build()},
            tag="cp312-cp312-manylinux_2_28_x86_64",
        ),
    )
    yield (
        name("musl", "py3-none-musllinux_1_2_x86_64"),
        wheel(
            with_elf(needed=["libc.musl-x86_64.so.1"], version_needs={}, symbols=[]),
            tag="py3-none-musllinux_1_2_x86_64",
        ),
    )
    yield name("broken-library"), wheel({**code, "pkg/_C.so": extension().build()[:300]})
    yield (
        name("broken-fatbin"),
        wheel(
            with_elf(
                sections={
                    ".nv_fatbin": b"garbage.garbage." + fatbin([Code("sass", 80, CUBIN)])[:-9]
                }
            )
        ),
    )
    good = wheel({**code, **library})
    yield name("one-bad-member"), patched(good, good.index(b"pkg/_C.so") + 20, b"\xff" * 8)
    yield "badly-named/pkg.whl", good
    yield "pure/pkg-1.0-py3-none-any.whl", wheel(code, tag="py3-none-any", purelib="true")
    yield "torch/torch-2.10.0-cp311-cp311-manylinux_2_28_x86_64.whl", wheel(torch_libraries())
    yield (
        "torch-too-old/torch-2.9.0-cp311-cp311-manylinux_2_28_x86_64.whl",
        wheel(torch_libraries(**{"libtorch_cpu.so": Elf(soname="libtorch_cpu.so")})),
    )


def main() -> None:
    folder = Path(sys.argv[1])
    groups = {"elf": elf_files, "fatbin": fatbin_files, "zip": zip_files, "wheel": wheel_files}
    for group, files in groups.items():
        for name, data in files():
            path = folder / group / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


if __name__ == "__main__":
    main()

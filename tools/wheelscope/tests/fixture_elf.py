"""Builds ELF files and CUDA fat binaries byte by byte, so that a fixture can have any defect."""

import struct
from dataclasses import dataclass, field

MACHINES = {
    "x86_64": 62,
    "aarch64": 183,
    "i686": 3,
    "s390x": 22,
    "cuda": 190,
    "amdgpu": 224,
    "hexagon": 164,
}
PT_LOAD, PT_DYNAMIC, PT_INTERP, PT_STACK, PT_RELRO = 1, 2, 3, 0x6474E551, 0x6474E552
DT_NEEDED, DT_HASH, DT_STRTAB, DT_SYMTAB, DT_STRSZ, DT_SONAME, DT_RPATH = 1, 4, 5, 6, 10, 14, 15
DT_TEXTREL, DT_FLAGS, DT_RUNPATH, DT_GNU_HASH = 22, 30, 29, 0x6FFFFEF5
DT_VERSYM, DT_VERDEF, DT_VERDEFNUM = 0x6FFFFFF0, 0x6FFFFFFC, 0x6FFFFFFD
DT_VERNEED, DT_VERNEEDNUM = 0x6FFFFFFE, 0x6FFFFFFF
FAR = 0x100000  # distance between the address of far strings and their offset in the file


@dataclass
class Symbol:
    name: str
    defined: bool = False
    weak: bool = False
    version: str = ""  # of a version need or definition of the file
    hidden: bool = False  # name@V, not name@@V
    visibility: int = 0  # 2: STV_HIDDEN


@dataclass
class Elf:
    machine: str = "x86_64"
    wide: bool = True
    big_endian: bool = False
    type: int = 3
    flags: int = 0
    soname: str = ""
    needed: list[str] = field(default_factory=list)
    rpath: str = ""
    runpath: str = ""
    symbols: list[Symbol] = field(default_factory=list)
    version_needs: dict[str, list[str]] = field(default_factory=dict)
    version_definitions: list[str] = field(default_factory=list)
    sections: dict[str, bytes] = field(default_factory=dict)
    bind_now: bool = False
    relro: bool = False
    executable_stack: bool = False
    text_relocations: bool = False
    interpreter: str = ""
    gnu_hash: bool = False
    abi_version: int = 0
    far_strings: bool = False  # strings in their own segment, as from tools that rewrite tables
    split_symbols: bool = False  # half in one segment, half in the next, as from patchelf

    def pack(self, layout: str, *values: int) -> bytes:
        """Packs fields: B, H, I as in struct; W is a word of the file's width."""
        width = "Q" if self.wide else "I"
        return struct.pack((">" if self.big_endian else "<") + layout.replace("W", width), *values)

    def build(self) -> bytes:
        return _Builder(self).build()


class _Builder:
    def __init__(self, elf: Elf) -> None:
        self.elf = elf
        self.pack = elf.pack
        self.strings = bytearray(b"\0")
        header, segment = (64, 56) if elf.wide else (52, 32)
        self.image = bytearray(header + 6 * segment)
        self.far = 0  # where the far strings start
        self.border = 0  # where the second of two joined segments starts

    def string(self, text: str) -> int:
        at = len(self.strings)
        self.strings += text.encode() + b"\0"
        return at

    def place(self, data: bytes) -> int:
        """Puts data into the image and returns its address, which is also its offset."""
        self.image += b"\0" * (-len(self.image) % 8)
        at = len(self.image)
        self.image += data
        return at

    def symbol_table(self) -> bytes:
        table = b"\0" * (24 if self.elf.wide else 16)
        for symbol in self.elf.symbols:
            info = (2 if symbol.weak else 1) << 4 | 2
            section, name = (1 if symbol.defined else 0), self.string(symbol.name)
            if self.elf.wide:
                table += self.pack("IBBHQQ", name, info, symbol.visibility, section, 0, 0)
            else:
                table += self.pack("IIIBBH", name, 0, 0, info, symbol.visibility, section)
        return table

    def versions(self) -> tuple[bytes, bytes, bytes]:
        """Returns the version of each symbol, the needs and the definitions."""
        index, needs, definitions = {"": 1}, b"", b""
        for library, versions in self.elf.version_needs.items():
            last = library == list(self.elf.version_needs)[-1]
            chain = b""
            for version in versions:
                index[version] = len(index) + 1
                more = 0 if version == versions[-1] else 16
                chain += self.pack("IHHII", 0, 0, index[version], self.string(version), more)
            size = 0 if last else 16 + len(chain)
            needs += self.pack("HHIII", 1, len(versions), self.string(library), 16, size) + chain
        for version in self.elf.version_definitions:
            index.setdefault(version, len(index) + 1)
            last = version == self.elf.version_definitions[-1]
            definitions += self.pack("HHHHIII", 1, 0, index[version], 1, 0, 20, 0 if last else 28)
            definitions += self.pack("II", self.string(version), 0)
        symbols = self.pack("H", 0)
        for symbol in self.elf.symbols:
            symbols += self.pack("H", index[symbol.version] | (0x8000 if symbol.hidden else 0))
        return symbols, needs, definitions

    def hash_table(self) -> bytes:
        count = len(self.elf.symbols) + 1
        if not self.elf.gnu_hash:
            word = "Q" if self.elf.machine == "s390x" and self.elf.wide else "I"
            return self.pack(word * 2, 1, count) + self.pack(word, 0) * (1 + count)
        if not any(symbol.defined for symbol in self.elf.symbols):
            return self.pack("IIII", 1, 1, 1, 0) + self.pack("W", 0) + self.pack("I", 0)
        chains = b"".join(self.pack("I", 3 if i == count - 1 else 2) for i in range(1, count))
        return self.pack("IIII", 1, 1, 1, 0) + self.pack("W", 0) + self.pack("I", 1) + chains

    def dynamic_table(self) -> bytes:
        elf = self.elf
        entries = [(DT_NEEDED, self.string(name)) for name in elf.needed]
        for tag, text in (
            (DT_SONAME, elf.soname),
            (DT_RPATH, elf.rpath),
            (DT_RUNPATH, elf.runpath),
        ):
            if text:
                entries.append((tag, self.string(text)))
        symbols = self.symbol_table()
        versions, needs, definitions = self.versions()
        entries.append((DT_GNU_HASH if elf.gnu_hash else DT_HASH, self.place(self.hash_table())))
        if needs or definitions:
            entries.append((DT_VERSYM, self.place(versions)))
        if not elf.far_strings:
            entries.append((DT_SYMTAB, self.place(symbols)))
        if elf.split_symbols:
            self.border = entries[-1][1] + len(symbols) // 2
        if needs:
            entries += [(DT_VERNEED, self.place(needs)), (DT_VERNEEDNUM, len(elf.version_needs))]
        if definitions:
            count = len(elf.version_definitions)
            entries += [(DT_VERDEF, self.place(definitions)), (DT_VERDEFNUM, count)]
        if elf.bind_now:
            entries.append((DT_FLAGS, 8))
        if elf.text_relocations:
            entries.append((DT_TEXTREL, 0))
        entries.append((DT_STRSZ, len(self.strings)))
        if elf.far_strings:
            entries.append((DT_SYMTAB, self.place(symbols)))
            self.symbols = (entries[-1][1], len(symbols))
            self.place(b"X" * 48)  # remains of an older table
            self.far = self.place(bytes(self.strings))
            entries.append((DT_STRTAB, self.far + FAR))
        else:
            entries.append((DT_STRTAB, self.place(bytes(self.strings))))
        return b"".join(self.pack("WW", tag, value) for tag, value in [*entries, (0, 0)])

    def section_headers(self) -> tuple[int, int]:
        names, headers = bytearray(b"\0"), [(0, 0, 0, 0)]
        for name, data in [*self.elf.sections.items(), (".shstrtab", b"")]:
            at = len(names)
            names += name.encode() + b"\0"
            if name == ".shstrtab":
                data = bytes(names)
            kind = 2 if name == ".symtab" else 1
            headers.append((at, kind, self.place(data), len(data)))
        if self.far:
            headers.insert(1, (0, 11, *self.symbols))
        table = b""
        for name_at, kind, offset, size in headers:
            address = offset if kind == 11 else 0
            table += self.pack("IIWWWWIIWW", name_at, kind, 0, address, offset, size, 0, 0, 1, 0)
        return self.place(table), len(headers)

    def build(self) -> bytes:
        elf = self.elf
        segments: list[tuple[int, int, int, int]] = []
        if elf.type != 1:
            table = self.dynamic_table()
            segments.append((PT_DYNAMIC, 6, self.place(table), len(table)))
        if elf.interpreter:
            text = elf.interpreter.encode() + b"\0"
            segments.append((PT_INTERP, 4, self.place(text), len(text)))
        segments.append((PT_STACK, 7 if elf.executable_stack else 6, 0, 0))
        if elf.relro:
            segments.append((PT_RELRO, 4, 0, 0))
        sections, count = self.section_headers()
        border = self.far or self.border
        segments.append((PT_LOAD, 5, 0, border or len(self.image)))
        if border:
            segments.append((PT_LOAD, 4, border, len(self.image) - border))
        table = b""
        for kind, flags, at, size in segments:
            address = at + FAR if self.far and at >= self.far else at
            if elf.wide:
                table += self.pack("IIQQQQQQ", kind, flags, at, address, at, size, size, 8)
            else:
                table += self.pack("IIIIIIII", kind, at, at, at, size, size, flags, 8)
        ident = (
            b"\x7fELF"
            + bytes([2 if elf.wide else 1, 2 if elf.big_endian else 1, 1, 0, elf.abi_version])
            + b"\0" * 7
        )
        header_size, segment, section = (64, 56, 64) if elf.wide else (52, 32, 40)
        header = ident + self.pack(
            "HHIWWWIHHHHHH", elf.type, MACHINES[elf.machine], 1, 0, header_size, sections,
            elf.flags, header_size, segment, len(segments), section, count, count - 1,
        )  # fmt: skip
        self.image[: len(header)] = header
        self.image[header_size : header_size + len(table)] = table
        return bytes(self.image)


def lz4(data: bytes) -> bytes:
    """Makes an LZ4 block of literals only."""
    if len(data) < 15:
        return bytes([len(data) << 4]) + data
    more, rest = b"", len(data) - 15
    while rest >= 255:
        more, rest = more + b"\xff", rest - 255
    return b"\xf0" + more + bytes([rest]) + data


def zstd(data: bytes) -> bytes:
    """Makes a zstd frame with one raw block."""
    block = struct.pack("<I", len(data) << 3 | 1)[:3] + data
    return struct.pack("<IBI", 0xFD2FB528, 0xA0, len(data)) + block


@dataclass
class Code:
    """An entry of a fat binary."""

    kind: str  # sass, ptx
    arch: int
    payload: bytes
    compression: str = ""
    suffix: str = ""
    isa: tuple[int, int] = (8, 4)
    raw_kind: int = 0  # instead of kind

    def build(self) -> bytes:
        stored = {"": bytes, "lz4": lz4, "zstd": zstd}[self.compression](self.payload)
        flags = {"": 0, "lz4": 0x2000, "zstd": 0x8000}[self.compression]
        flags |= {"": 0, "a": 0x100000, "f": 0x200000}[self.suffix]
        padded = stored + b"\0" * (-len(stored) % 8)
        size = (len(stored), len(self.payload)) if self.compression else (0, 0)
        kind = self.raw_kind or (1 if self.kind == "ptx" else 2)
        header = struct.pack(
            "<HHIQIIHHIIIQQQ", kind, 0x101, 64, len(padded), size[0], 0,
            self.isa[1], self.isa[0], self.arch, 0, 0, flags, 0, size[1],
        )  # fmt: skip
        return header + padded


def container(entries: bytes) -> bytes:
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(entries)) + entries


def fatbin(codes: list[Code]) -> bytes:
    return container(b"".join(code.build() for code in codes))


def member_header(name: str, size: int) -> bytes:
    return f"{name:<16}{0:<12}{0:<6}{0:<6}{644:<8}{size:<10}`\n".encode()


def archive_of_objects(*objects: bytes) -> bytes:
    """Makes a static library, with a table of symbols that a reader must skip."""
    text = b"!<arch>\n"
    for name, data in (("/", b"\0\0\0\0"), *(("x.o/", data) for data in objects)):
        text += member_header(name, len(data)) + data + b"\n" * (len(data) % 2)
    return text

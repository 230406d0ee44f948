"""Writes the test files of wheelscope, each named for its defect: `python fixtures.py FOLDER`."""

import base64
import hashlib
import os
import struct
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from fixture_elf import Code, Elf, Symbol, archive_of_objects, fatbin
from fixture_zip import Files, archive, patched, zip_files

PTX = b".version 8.4\n.target sm_90\n.address_size 64\n\0"
CUBIN = b"\x7fELF cubin" * 20

CLAIMS_CUDA = """\
Requires-Python: >=3.10
Requires-Dist: torch>=2.10
Classifier: Environment :: GPU :: NVIDIA CUDA :: 12
"""
LIBC_NEEDS = {"libc.so.6": ["GLIBC_2.17", "GLIBC_2.27"], "libstdc++.so.6": ["GLIBCXX_3.4.21"]}


def extension(**changes: object) -> Elf:
    """Makes a library like ours: stable torch ABI, device code, hardened."""
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


def environment_files() -> Iterator[tuple[str, bytes]]:
    """A module with a library beside it, one for torch, and what they need."""
    module = Symbol("PyInit__C", defined=True)
    needs = [module, Symbol("fixture_function")]
    library = Symbol("fixture_function", defined=True)
    found = Elf(symbols=needs, needed=["libfixture.so.1"], runpath="$ORIGIN/libs")
    yield "module.so", found.build()
    on_torch = Elf(symbols=[module, Symbol("_ZN3c105ErrorC1ESs")], needed=["libc10.so"])
    yield "module-on-torch.so", on_torch.build()
    add = "_ZN2at4_ops3add4callERKNS_6TensorE"
    yield "c10-with-add.so", Elf(soname="libc10.so", symbols=[Symbol(add, defined=True)]).build()
    on_tensors = Elf(
        symbols=[module, Symbol(add)], needed=["libc10.so"], runpath="$ORIGIN/../torch/lib"
    )
    yield "module-with-tensors.so", on_tensors.build()
    yield "libfixture.so.1", Elf(soname="libfixture.so.1", symbols=[library]).build()
    yield "torch-deps.so", Elf(needed=["libcudart.so.12"]).build()
    yield (
        "torch-module.so",
        Elf(symbols=[module], needed=["libc10.so"], runpath="$ORIGIN/lib").build(),
    )
    yield from numpy_modules()


def numpy_modules() -> Iterator[tuple[str, bytes]]:
    """Modules with the texts that NumPy's headers leave in them, and some that only look alike."""
    symbols = [Symbol("PyInit__C", defined=True), Symbol("PyCapsule_GetPointer", weak=True)]
    old, one, two = (
        b"numpy.core.multiarray",
        b"numpy.core._multiarray_umath",
        b"numpy._core._multiarray_umath",
    )
    says = (
        b"module was compiled against NumPy C-API version 0x%x (NumPy 1.23) but the running NumPy"
    )
    size = b"%s size changed, may indicate binary incompatibility. Expected %zd from C header"
    texts = {
        "numpy-1": [one, b"_ARRAY_API"],
        "numpy-1-after-a-number": [b"\0\0\0\0\0\xf0?" + one, b"_ARRAY_API"],  # the double 1.0
        "numpy-1-after-a-text": [b"\0" * 15 + b"dateutil.relativ" + one, b"_ARRAY_API"],
        "numpy-1.15": [old, b"_ARRAY_API", b"_ARRAY_API is not PyCapsule object"],
        "numpy-of-pybind11": [old, b"_ARRAY_API"],
        "numpy-1-cython": [b"dtype", one, b"_ARRAY_API", size],
        "numpy-1-types": [b"dtype", size, b"numpy.core.multiarray failed to import"],
        "numpy-2-types": [b"dtype", size, b"numpy._core.multiarray failed to import"],
        "numpy-2": [two, one, b"_ARRAY_API", says],
        "numpy-2-only": [two, b"_UFUNC_API"],
        "numpy-mentioned": [
            b"import of " + one + b" failed",
            b"cannot import " + one,
            b"_ARRAY_API",
        ],
        "numpy-pickled": [one, b"_reconstruct"],
    }
    for name, words in texts.items():
        data = b"".join(b"\0" + word for word in words) + b"\0"
        yield name + ".so", Elf(symbols=symbols, sections={".rodata": data}).build()
    data = b"\0" + one + b"\0_ARRAY_API\0"
    behind = Elf(symbols=symbols[1:], soname="libbehind.so", sections={".rodata": data})
    yield "libbehind.so", behind.build()
    asking = Elf(symbols=symbols[:1], needed=["libbehind.so"], runpath="$ORIGIN")
    yield "numpy-behind.so", asking.build()
    yield "numpy-no-capsules.so", Elf(symbols=symbols[:1], sections={".rodata": data}).build()


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
    python = extension(
        interpreter="/lib64/ld-linux-x86-64.so.2", needed=["libpython3.11.so.1.0", "libc.so.6"]
    )
    yield "python-program", python.build()
    c10 = Elf(soname="libc10.so", symbols=[Symbol("_ZN3c105ErrorC1ESs", defined=True)])
    yield "c10-before-cxx11.so", c10.build()
    yield from environment_files()
    old = Symbol("f", defined=True, version="V_1", hidden=True)
    symbols, versions = [Symbol("f", defined=True, version="V_2"), old], ["V_1", "V_2"]
    versioned = Elf(soname="libv.so.1", version_definitions=versions, symbols=symbols)
    yield "versions.so", versioned.build()
    hidden = [*extension().symbols[:-1], Symbol("my_add", defined=True, visibility=2)]
    yield "hidden-definition.so", extension(symbols=hidden).build()
    rewritten = extension(gnu_hash=True, symbols=extension().symbols[:-1], far_strings=True)
    yield "rewritten-tables.so", rewritten.build()
    yield "split-symbols.so", extension(split_symbols=True).build()
    yield "kernel.cubin", Elf(machine="cuda", type=2, flags=80).build()
    yield "kernel-of-cuda-12.cubin", Elf(machine="cuda", type=2, flags=0x5A085A).build()
    accelerated = Elf(machine="cuda", type=2, flags=100 << 8 | 8, abi_version=8)
    yield "kernel-accelerated.cubin", accelerated.build()
    note = {".note.nv.tkinfo": b"\0ptxas\0-arch sm_100f -m 64\0"}
    family = Elf(machine="cuda", type=2, flags=100 << 8, abi_version=8, sections=note)
    yield "kernel-of-a-family.cubin", family.build()
    yield "kernel.hsaco", Elf(machine="amdgpu").build()
    first, second = (
        Elf(type=1, sections={"__nv_relfatbin": fatbin([Code("sass", sm, CUBIN)])}).build()
        for sm in (75, 80)
    )
    yield "object.o", first
    yield "objects.a", archive_of_objects(first, second, b"text")
    yield "damaged.a", archive_of_objects(first)[:-100]
    yield "kernel.ptx", b"//\n// made by hand\n//\n" + PTX
    yield "notes.ptx", b"This is no PTX.\n"
    data = good.build()
    yield "too-short-for-header.so", data[:40]
    yield "truncated.so", data[: len(data) // 2]
    yield "empty-class.so", patched(data, 4, b"\x07")
    yield "unknown-byte-order.so", patched(data, 5, b"\x09")
    yield "program-headers-out-of-range.so", patched(data, 32, struct.pack("<Q", 1 << 60))
    yield "section-headers-out-of-range.so", patched(data, 40, struct.pack("<Q", len(data) + 1))
    yield "program-header-size.so", patched(data, 54, struct.pack("<H", 7))


def fatbin_files() -> Iterator[tuple[str, bytes]]:
    codes = [
        Code("sass", 100, CUBIN, "zstd", "f"),
        Code("ptx", 120, PTX, "zstd", isa=(8, 8)),
        Code("sass", 75, CUBIN),
    ]
    good = fatbin(codes)
    yield "good.fatbin", good + b"\0" * 8 + good
    yield (
        "link-time-code.fatbin",
        fatbin([Code("", 80, b"IR", raw_kind=8), Code("", 90, b"?", raw_kind=64)]),
    )
    yield "truncated-body.fatbin", good[: len(good) - 30]
    yield "foreign-bytes-between.fatbin", good + b"garbage." + good
    yield "wrong-version.fatbin", patched(good, 4, b"\x09\0")
    yield "entry-header-too-small.fatbin", patched(good, 20, struct.pack("<I", 8))
    yield "payload-out-of-range.fatbin", patched(good, 24, struct.pack("<Q", 1 << 62))
    yield "damaged-zstd.fatbin", patched(good, 84, b"\xff" * 12)
    packed = fatbin([Code("sass", 80, CUBIN, "lz4")])
    yield "bomb.fatbin", patched(packed, 16 + 56, struct.pack("<Q", 1 << 50))
    yield "unknown-compression.fatbin", patched(packed, 16 + 40, struct.pack("<Q", 0))


def record(files: Files, dist_info: str, algorithm: str = "sha256") -> bytes:
    lines = []
    for name, data in files.items():
        hashed = hashlib.new(algorithm, data).digest()
        digest = base64.urlsafe_b64encode(hashed).rstrip(b"=").decode()
        lines.append(f"{name},{algorithm}={digest},{len(data)}")
    return "\n".join([*lines, f"{dist_info}/RECORD,,", ""]).encode()


def wheel(
    files: Files,
    tag: str = "py3-none-manylinux_2_28_x86_64",
    version: str = "1.0",
    metadata: str = CLAIMS_CUDA,
    purelib: str = "false",
    record_text: bytes | None = None,
    stored: bool = False,
    unhashed: str = "",
    algorithm: str = "sha256",
) -> bytes:
    dist_info = f"pkg-{version}.dist-info"
    files = {
        **files,
        f"{dist_info}/METADATA": f"Metadata-Version: 2.4\nName: pkg\nVersion: {version}\n"
        f"Summary: A test\nLicense-Expression: MIT\n{metadata}\ntext".encode(),
        f"{dist_info}/WHEEL": "Wheel-Version: 1.0\nGenerator: fixtures\n"
        f"Root-Is-Purelib: {purelib}\nTag: {tag}\n".encode(),
    }
    if record_text is None:
        record_text = record(
            {name: data for name, data in files.items() if name != unhashed}, dist_info, algorithm
        )
        record_text += f"{unhashed},,\n".encode() if unhashed else b""
    files[f"{dist_info}/RECORD"] = record_text
    return archive(files, zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED)


TAG = "py3-none-manylinux_2_28_x86_64"


def named(
    folder: str, files: Files, tag: str = TAG, version: str = "1.0", **options: Any
) -> tuple[str, bytes]:
    """Makes a wheel, named by its version and tag."""
    contents = wheel(files, tag=tag, version=version, **options)
    return f"{folder}/pkg-{version}-{tag}.whl", contents


def wheel_files() -> Iterator[tuple[str, bytes]]:
    code = {"pkg/__init__.py": b"import torch\n"}
    library = {"pkg/_C.so": extension().build()}
    both = {**code, **library}

    def with_elf(**changes: object) -> Files:
        return {**code, "pkg/_C.so": extension(**changes).build()}

    def with_symbols(*names: str) -> Files:
        return with_elf(symbols=[Symbol(name) for name in names])

    good = wheel(both)
    plain = f"pkg-1.0-{TAG}.whl"
    yield f"good/{plain}", good
    yield f"one-bad-member/{plain}", patched(good, good.index(b"pkg/_C.so") + 9, b"\x07")
    yield "badly-named/pkg.whl", good
    yield f"variant/pkg-1.0-{TAG}-cu129.whl", good
    yield f"tags-differ/{plain}", wheel(both, tag="py3-none-any")
    yield f"no-record/{plain}", archive(both)
    yield named("good-stored", both, stored=True)
    yield named("no-device-code", with_elf(sections={".rodata": b"\0"}))
    yield named("false-tag", both, "py3-none-manylinux_2_17_x86_64")
    yield named("any-with-binaries", both, "py3-none-any", purelib="true")
    linux = "py3-none-linux_x86_64"
    yield named("linux-tag", both, linux)
    newer = {"libc.so.6": ["GLIBC_2.17", "GLIBC_2.99"]}
    yield named("too-new-platform", with_elf(version_needs=newer), linux)
    yield named("other-machine", with_elf(machine="aarch64"))
    short = b"pkg/_C.so,sha256=AAAA,4\npkg-1.0.dist-info/RECORD,,\n"
    yield named("record-wrong-hash", both, record_text=short)
    lines = b'"pkg/""x"".py",sha256=AA,1\npkg/__init__.py,md5=AA,13\npkg/__init__.py,,\r\n'
    yield named("record-bad-lines", both, record_text=lines + b"pkg-1.0.dist-info/RECORD,,\n")
    signature = "pkg-1.0.dist-info/RECORD.jws"
    yield named("signed", {**code, signature: b"{}"}, unhashed=signature)
    for platform, tag in {"win_amd64": "cp310-abi3", "macosx_11_0_arm64": "cp311-cp311"}.items():
        yield named(platform, {**code, "pkg/_C.pyd": b"MZ"}, f"{tag}-{platform}")
    yield named("record-sha512", both, algorithm="sha512")
    yield named("record-md5", code, algorithm="md5")
    wrong_size = record(code, "pkg-1.0.dist-info").replace(b",13", b",14")
    yield named("record-wrong-size", code, record_text=wrong_size)
    cxx = "_ZN3c105ErrorC1ESs"
    add = "_ZN2at4_ops3add4callERKNS_6TensorE"
    yield named("cxx-abi", with_symbols(cxx, add, "torch_call_dispatcher"))
    yield named("cxx-abi-of-2.15", with_symbols(cxx), version="1.0+cu130torch2.15")
    yield named("torch-symbol-unknown", with_symbols("torch_no_such_function"))
    later = with_symbols("torch_call_dispatcher", "torch_stream_native_handle")
    yield named("torch-too-new", later)
    yield named("needs-cuda-shim", with_symbols("aoti_torch_get_current_cuda_stream"))
    thirteen = with_elf(needed=["libtorch.so", "libcudart.so.13", "libc.so.6"])
    yield named("dynamic-cudart-13", thirteen)
    ten = with_elf(needed=["libcudart-0f1e2d3c.so.10.2.89", "libc.so.6"])
    yield named("old-cuda", ten)
    weak = {"bind_now": False, "relro": False, "executable_stack": True, "text_relocations": True}
    yield named("weak-hardening", with_elf(symbols=[Symbol("my_add", defined=True)], **weak))
    sections = {
        ".rodata": b"\0/home/builder/pkg/ops.cpp\0x/home/no\0",
        ".debug_info": b"x",
        ".symtab": b"",
        ".nv_fatbin": fatbin([Code("sass", 80, CUBIN)]),
    }
    needed = ["libtorch.so", "libfoo.so.1", "libc.so.6"]
    rpath = "/usr/local/lib:$ORIGIN/../lib"
    yield named("debug-and-paths", with_elf(sections=sections, rpath=rpath, needed=needed))
    musl = with_elf(needed=["libc.musl-x86_64.so.1"], version_needs={}, symbols=[])
    yield named("musl", musl, "py3-none-musllinux_1_2_x86_64")
    for folder, tag, glibc in (
        ("between-policies-2_29", "2_29", "2.29"),
        ("between-policies-2_32", "2_32", "2.32"),
        ("between-policies-false", "2_29", "2.30"),
    ):
        needs = {"libc.so.6": ["GLIBC_2.17", f"GLIBC_{glibc}"]}
        files = with_elf(version_needs=needs, symbols=[])
        yield named(folder, files, f"py3-none-manylinux_{tag}_x86_64")
    names = {"pkg/\x1b[2Jx\u202e.txt": b"x", "pkg/\x1b]0;t\x07.so": Elf().build()}
    yield named("escape-in-a-name", {**code, **names})
    yield named("broken-library", {**code, "pkg/_C.so": extension().build()[:300]})
    garbage = b"garbage.garbage." + fatbin([Code("sass", 80, CUBIN)])[:-9]
    yield named("broken-fatbin", with_elf(sections={".nv_fatbin": garbage}))
    yield named("pure", code, "py3-none-any", purelib="true")
    for folder, version, changes in (
        ("torch", "2.10.0", {}),
        ("torch-too-old", "2.9.0", {"libtorch_cpu.so": Elf(soname="libtorch_cpu.so")}),
    ):
        name = f"torch-{version}-cp311-cp311-manylinux_2_28_x86_64.whl"
        yield f"{folder}/{name}", wheel(torch_libraries(**changes))
    yield from python_wheels(code)
    yield from device_wheels(code)
    yield from link_wheels(code)


def python_wheels(code: Files) -> Iterator[tuple[str, bytes]]:
    """Modules for one Python and for several, for free-threaded ones, for the limited API of both."""
    module = [
        Symbol("PyInit__C", defined=True),
        Symbol("PyModule_Create2"),
        Symbol("PyObject_GetBuffer"),
    ]
    private = [*module[:2], Symbol("_PyObject_GetDictPtr")]

    def one(
        folder: str,
        tag: str,
        files: dict[str, list[Symbol]],
        metadata: str = CLAIMS_CUDA,
        **changes: object,
    ) -> tuple[str, bytes]:
        contents = {
            f"pkg/{path}": extension(symbols=symbols, **changes).build()
            for path, symbols in files.items()
        }
        tag += "-manylinux_2_28_x86_64"
        return named(folder, {**code, **contents}, tag, metadata=metadata)

    def for_python(version: str) -> str:
        return f"_C.cpython-{version}-x86_64-linux-gnu.so"

    yield one("abi3", "cp310-abi3", {"_C.abi3.so": module})
    yield one("one-python", "cp311-cp311", {for_python("311"): private})
    yield one("one-python-tagged-none", "py3-none", {"_C.so": private})
    yield one("one-python-unnamed", "cp312-cp312", {"_C.so": private})
    several = {for_python(version): private for version in ("310", "311", "312")}
    for folder, requires in {
        "several-pythons": ">=3.10,<3.13",
        "several-pythons-and-later-ones": ">=3.10",
        "several-pythons-not-the-oldest": ">=3.8",
    }.items():
        yield one(folder, "py3-none", several, f"Requires-Python: {requires}\n")
    yield one("free-threaded", "cp314-cp314t", {for_python("314t"): private}, "")
    yield one("abi3-of-a-newer-python", "cp38-abi3", {"_C.abi3.so": module}, "")
    newer = "Requires-Python: >=3.11\n"
    yield one("abi3-with-requires-python", "cp38-abi3", {"_C.abi3.so": module}, newer)
    pypy = {"_C.pypy310-pp73-x86_64-linux-gnu.so": private}
    yield one("pypy", "pp310-pypy310_pp73", pypy, "")
    slots = [Symbol("PyModExport__C", defined=True), *module[1:]]
    yield one("abi3t", "cp315-abi3t", {"_C.abi3t.so": slots}, "")
    yield one("abi3t-without-slots", "cp315-abi3t", {"_C.abi3t.so": module}, "")
    yield one("abi3t-of-an-older-python", "cp313-abi3t", {"_C.abi3t.so": slots}, "")
    binding = Symbol("PyBinding_TypeF")
    bound = {"_C.abi3.so": [*module, binding]}
    inside = {**bound, "libb.so": [replace(binding, defined=True)]}
    yield one("bindings-inside", "cp311-abi3", inside, "")
    needed = ["libbinding.abi3.so.6", "libc.so.6"]
    yield one("bindings-outside", "cp311-abi3", bound, needed=needed)
    yield one("bindings-nowhere", "cp311-abi3", bound, "")


def device_wheels(code: Files) -> Iterator[tuple[str, bytes]]:
    """Libraries that serve different GPUs, loose device code, targets of Jetson boards."""

    def with_code(*containers: list[Code], **changes: object) -> bytes:
        section = b"".join(map(fatbin, containers))
        return extension(sections={".nv_fatbin": section}, **changes).build()

    def sass(*targets: int) -> list[Code]:
        return [Code("sass", target, CUBIN) for target in targets]

    wide = with_code([*sass(75, 80, 90), Code("ptx", 90, PTX)])
    narrow = with_code([*sass(80), Code("ptx", 80, PTX)])
    both = {**code, "pkg/wide.so": wide, "pkg/narrow.so": narrow}
    yield named("one-library-serves-less", both)
    some = with_code(sass(75, 80), sass(80))
    yield named("target-in-some-fatbins", {**code, "pkg/_C.so": some})
    yield named("jetson", {**code, "pkg/_C.so": with_code(sass(72, 87))})
    note = b"\0nvlink\0Cuda compilation tools, release 13.2, V13.2.51\0"
    cubin = Elf(machine="cuda", type=2, sections={".note.nv.tkinfo": note}).build()
    per_cuda = {
        f"pkg/cuda{major}.so": with_code(
            [*sass(80), Code("sass", newest, cubin, "zstd")],
            needed=[f"libcudart.so.{major}", "libc.so.6"],
        )
        for major, newest in ((12, 90), (13, 100))
    }
    yield named("one-library-per-cuda", {**code, **per_cuda})
    cubins = {
        f"pkg/k{i}.cubin": Elf(
            machine="cuda", type=2, flags=sm << 8 | 8 * (sm == 100), abi_version=8
        ).build()
        for i, sm in enumerate([80, 90] * 8 + [100])
    }
    loose = {"pkg/x.fatbin": fatbin([Code("ptx", 75, PTX)]), "pkg/y.ptx": PTX}
    anywhere: dict[str, Any] = {"tag": "py3-none-any", "purelib": "true"}
    metadata = "Requires-Dist: numpy\n"
    files = {**code, **cubins, **loose}
    yield named("loose-device-code", files, metadata=metadata, **anywhere)
    foreign = {
        "pkg/kernel.hsaco": Elf(machine="amdgpu").build(),
        "pkg/skel.so": Elf(machine="hexagon", wide=False).build(),
        "pkg/kernel.cubin": Elf(machine="cuda", type=2, flags=80).build(),
    }
    yield named("code-for-other-processors", {**code, **foreign}, metadata="", **anywhere)
    objects = archive_of_objects(Elf(type=1, sections={"__nv_relfatbin": fatbin(sass(70))}).build())
    tag = "py3-none-manylinux_2_17_x86_64"
    yield named("static-library", {**code, "pkg/libx.a": objects}, tag, metadata=metadata)


def link_wheels(code: Files) -> Iterator[tuple[str, bytes]]:
    """A module and a library of its own in another folder, with and without a way to it."""
    inner = Elf(soname="libinner.so", symbols=[Symbol("inner", defined=True)]).build()
    for folder, runpath in {
        "runpath-leads-to-a-library": "$ORIGIN/../pkg.libs",
        "nothing-leads-to-a-library": "",
    }.items():
        symbols = [Symbol("PyInit__C", defined=True), Symbol("inner")]
        user = Elf(needed=["libinner.so"], runpath=runpath, symbols=symbols)
        files = {**code, "pkg/_C.so": user.build(), "pkg.libs/libinner.so": inner}
        yield named(folder, files, metadata="")
    functions = ("cuMemAlloc_v2", "dlopen", "pthread_create", "exp")
    driver = Elf(needed=["libcuda.so.1", "libc.so.6"], symbols=[Symbol(name) for name in functions])
    files = {**code, "pkg/_C.so": driver.build()}
    yield named("driver-and-libc-without-versions", files, metadata="")
    arm = {**code, "pkg/_C.so": extension(machine="aarch64").build()}
    yield named("aarch64", arm, "py3-none-manylinux_2_28_aarch64")


OPENS_LIBRARIES = b"""
from typing import TYPE_CHECKING
import ctypes, torch; from . import _C
with suppress(ImportError):
    from .extra import (one as first,  # why
        two)
if TYPE_CHECKING:
    import numpy
elif sys.platform == "win32": import winreg
def load(name):
    try:
        torch.ops.load_library(name)
    except OSError as error:
        raise ImportError(f"{name} does not load") from error
if not torch.version.hip: load("libcore.so")
"""


def python_sources() -> Iterator[tuple[str, bytes]]:
    """Python files that import or open what may be absent, and one that opens libraries."""
    yield "opens_libraries", OPENS_LIBRARIES
    library = Path(os.__file__).parent
    for name in ("ctypes/util.py", "hashlib.py", "platform.py", "pickle.py", "uuid.py"):
        yield Path(name).name, (library / name).read_bytes()


METADATA = b"""\
Metadata-Version: 2.4
Name: pkg
Version: 1!2.0rc1.post2.dev3+cu13.1
Summary: folded
       \x20
  over a line of blanks
Requires-Python: >=3.10,!=3.11.*,~=3.12.1
Requires-Dist: torch[cuda,x]==2.14.1 ; (python_version < "3.15" and sys_platform == 'linux') or extra == "gpu"
"""


def packaging_texts() -> Iterator[tuple[str, bytes]]:
    tags = b"cp313.cp315t-abi3.abi3t-manylinux_2_28_x86_64.musllinux_1_2_aarch64"
    yield "METADATA", METADATA
    yield "WHEEL", b"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: " + tags + b"\nBuild: 1\n"
    yield (
        "RECORD",
        record({"pkg/a.so": b""}, "pkg-1.0.dist-info") + b'"pkg/a, b.py",sha512=abc,12\n',
    )
    yield "marker", b'("3.9" <= python_version and extra == "a") or platform_release in "x"'
    yield "name", b"pkg-1.0-22local-cp313-abi3-manylinux_2_28_x86_64-cu129.whl"
    yield "specifiers", b">=3.10,!=3.11.*,~=3.12.1,===x"
    yield "version", b"1!2.0rc1.post2.dev3+cu13.1"


def messages() -> Iterator[tuple[str, bytes]]:
    """The messages that `explain` is tested with."""
    entries = Path(__file__).parents[1] / "src/data/explain.toml"
    for kind, entry in tomllib.loads(entries.read_text()).items():
        yield kind, entry["message"].encode()


def main() -> None:
    folder = Path(sys.argv[1])
    groups = {
        "elf": elf_files,
        "fatbin": fatbin_files,
        "zip": zip_files,
        "wheel": wheel_files,
        "packaging": packaging_texts,
        "python_source": python_sources,
        "explain": messages,
    }
    for group, files in groups.items():
        for name, data in files():
            path = folder / group / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


if __name__ == "__main__":
    main()

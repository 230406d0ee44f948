"""`python -m validation.tables NAME [FOLDER ...]` writes a generated table of src/data.

A CSV table has one row for all names that share the other fields.
"""

import csv
import json
import re
import subprocess
import sys
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import version
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from typing import Any

from validation import attributes, cudart, pypi
from validation.program import ask

DATA = Path("src/data")


def write_csv(
    file_name: str, head: list[str], header: str, rows: Iterable[tuple[str, ...]]
) -> None:
    """Writes rows whose first field is a name; rows that share the rest must be adjacent."""
    lines = [*(f"# {line}" for line in head), header]
    for shared, group in groupby(rows, lambda row: row[1:]):
        lines.append(",".join([" ".join(row[0] for row in group), *shared]))
    (DATA / file_name).write_text("\n".join([*lines, ""]))


def read_csv(file_name: str) -> list[list[str]]:
    """Returns the rows of a table, one for each name."""
    lines = [line for line in (DATA / file_name).read_text().splitlines() if line[:1] != "#"]
    return [[name, *rest] for names, *rest in csv.reader(lines[1:]) for name in names.split()]


def by_version(text: str) -> list[int]:
    return [int(number) for number in text.split(".")]


# --- manylinux.csv: for each symbol version, library and forbidden symbol, the oldest policy that allows it.
# auditwheel has the reverse: for each policy, all that it allows and forbids; newer ones allow more.
def read_policies(file_name: str) -> list[dict[str, Any]]:
    """Returns the policies of one kind of system, oldest first, without the catch-all `linux`."""
    policies = json.loads((files("auditwheel") / "policy" / file_name).read_text())
    tagged = [policy for policy in policies if policy["name"] != "linux"]
    return sorted(tagged, key=lambda policy: -policy["priority"])


def oldest_first(policies: list[dict[str, Any]]) -> Iterator[tuple[str, str, str, str]]:
    """Yields rows of the table; of several policies that allow the same, the oldest."""
    seen: set[tuple[str, str, str]] = set()
    for policy in policies:
        name = policy["name"]
        rows = [(alias, "alias", "", name) for alias in policy["aliases"]]
        rows += [(library, "library", "", name) for library in sorted(policy["lib_whitelist"])]
        for arch, prefixes in policy["symbol_versions"].items():
            rows.append((name, "policy", arch, name))
            rows += [
                (f"{prefix}_{number}", "version", arch, name)
                for prefix, numbers in prefixes.items()
                for number in numbers
            ]
        yield from (row for row in rows if row[:3] not in seen)
        seen.update(row[:3] for row in rows)


def forbidden(policies: list[dict[str, Any]], system: str) -> Iterator[tuple[str, str, str, str]]:
    """Yields symbols, the library that they are private to, and the oldest policy after the last
    that forbids them; the system's name alone if none allows them."""
    last = {
        (library, symbol): number
        for number, policy in enumerate(policies)
        for library, symbols in policy["blacklist"].items()
        for symbol in symbols
    }
    names = [policy["name"] for policy in policies] + [system]
    for (library, symbol), number in sorted(last.items(), key=lambda item: (item[1], item[0])):
        yield symbol, "forbidden", library, names[number + 1]


def write_manylinux(_: list[Path]) -> None:
    head = (
        "The platform policies. Source: the policies of auditwheel "
        f"{version('auditwheel')}. Generator: make table TABLE=manylinux"
    )
    rows = []
    for system in ("manylinux", "musllinux", "android"):
        policies = read_policies(f"{system}-policy.json")
        rows += [*oldest_first(policies), *forbidden(policies, system)]
    write_csv("manylinux.csv", [head], "names,kind,arch,policy", rows)


# --- python_abi3.csv: CPython's own list, which abi3info carries ------------------------------------
def write_python_abi3(_: list[Path]) -> None:
    from abi3info import DATAS, FUNCTIONS  # type: ignore[import-untyped]

    facts = [*FUNCTIONS.items(), *DATAS.items()]
    added = [(symbol.name, str(fact.added)) for symbol, fact in facts]
    head = (
        f"Symbols of Python's limited API. Source: abi3info {version('abi3info')}. "
        "Generator: make table TABLE=python_abi3"
    )
    rows = sorted(added, key=lambda row: (by_version(row[1]), row[0]))
    write_csv("python_abi3.csv", [head], "symbols,first_version", rows)


# --- driver_symbols.csv: the functions of the CUDA driver, by NVIDIA's list of their types ------------
# PFN_cuMemAlloc_v2000 and _v3020: cuMemAlloc came with CUDA 2.0 and changed with 3.2; cuda.h names the
# changed one cuMemAlloc_v2. Every driver that is still in use has what came before OLDEST.
OLDEST = 10000


def write_driver_symbols(_: list[Path]) -> None:
    wheel = pypi.wheel("nvidia-cuda-runtime", Path("build/tables/driver"), "x86_64")
    with zipfile.ZipFile(wheel) as archive:
        header = {
            Path(name).name: archive.read(name).decode()
            for name in archive.namelist()
            if name.endswith(("/cuda.h", "/cudaTypedefs.h"))
        }
    versions: dict[str, set[int]] = {}
    for name, number in re.findall(r"\bPFN_(cu\w+?)_v(\d+)", header["cudaTypedefs.h"]):
        versions.setdefault(name, set()).add(int(number))
    came = {name: min(numbers) for name, numbers in versions.items()}
    renamed = re.findall(r"#\s*define (cu\w+)\s+(cu\w+_v(\d+))\s*$", header["cuda.h"], re.MULTILINE)
    # cuGraphAddNode_v2 is the second of _v12020, _v12030 and _v13040; the third is no function.
    came |= {
        new: sorted(versions[old])[int(nth) - 1] for old, new, nth in renamed if old in versions
    }
    rows = sorted((number if number >= OLDEST else 0, name) for name, number in came.items())
    head = [
        "Functions of the CUDA driver (libcuda.so.1), and the CUDA that brought each; nothing: one before 10.0.",
        f"Source: cuda.h and cudaTypedefs.h of {wheel.name}. Generator: make table TABLE=driver_symbols",
    ]
    write_csv(
        "driver_symbols.csv",
        head,
        "symbols,first_cuda",
        [
            (name, f"{number // 1000}.{number % 1000 // 10}" if number else "")
            for number, name in rows
        ],
    )


# --- platform_symbols.csv: what the C library and gcc's runtime export ------------------------------
# Linkers leave the version out of some references; the name alone then has to tell that the platform
# has the symbol. C++ names are left out: wheelscope knows the runtime's by their namespace.
PLATFORM = ("libc.so.6", "libm.so.6", "libgcc_s.so.1", "libresolv.so.2")


def output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def write_platform_symbols(_: list[Path]) -> None:
    found: dict[str, str] = {}
    for library in PLATFORM:
        path = output("gcc", f"-print-file-name={library}").strip()
        for line in output("nm", "--dynamic", "--defined-only", path).splitlines():
            name = line.split()[-1].split("@")[0]
            if not name.startswith(("_Z", "GLIBC_", "GCC_")):
                found.setdefault(name, library)
    glibc = output("ldd", "--version").splitlines()[0].split()[-1]
    compiler = output("gcc", "-dumpfullversion").strip()
    head = (
        f"Symbols of the C library and of the compiler's runtime. Source: glibc {glibc} and "
        f"gcc {compiler} of Debian. Generator: make table TABLE=platform_symbols"
    )
    rows = sorted(found.items(), key=lambda row: (PLATFORM.index(row[1]), row[0]))
    write_csv("platform_symbols.csv", [head], "symbols,library", rows)


# --- cuda_libraries.csv: the distribution that brings each library of CUDA --------------------------
# The sources are site-packages with torch and the NVIDIA distributions that it requires, one for each
# major version of CUDA: their RECORD files name every library. Rows of others are kept.
Libraries = dict[tuple[str, str], str]  # library and CUDA's major version -> distribution


def libraries_in(site_packages: Path) -> Libraries:
    found: Libraries = {}
    runtime = next(site_packages.glob("nvidia_cuda_runtime*.dist-info")).name
    cuda = runtime.removesuffix(".dist-info").partition("-")[2].partition(".")[0]
    for record in sorted(site_packages.glob("nvidia_*.dist-info/RECORD")):
        distribution = record.parent.name.partition("-")[0].replace("_", "-")
        for path, *_ in csv.reader(record.read_text().splitlines()):
            name = Path(path).name
            # Libraries that programs link against have a version; .alt files are only for NVRTC.
            if name.startswith("lib") and ".so." in name and ".alt." not in name:
                found[name, cuda] = distribution
    return found


def write_cuda_libraries(folders: list[Path]) -> None:
    known = {(library, cuda): name for library, cuda, name in read_csv("cuda_libraries.csv")}
    for folder in folders:
        known |= libraries_in(folder)
    rows = [(name, cuda, distribution) for (name, cuda), distribution in known.items()]
    rows.sort(key=lambda row: (row[1:], row[0]))
    head = [
        "Libraries of CUDA and the distributions on PyPI that bring them. Source: RECORD files of the",
        "nvidia distributions that torch requires. Generator: make table TABLE=cuda_libraries",
    ]
    write_csv("cuda_libraries.csv", head, "libraries,cuda,distribution", rows)


# --- torch_shims.csv: torch's stable C functions, by first version ----------------------------------
# A function counts when torch's shim headers declare it and a library of torch exports it, which
# wheelscope itself reads from the wheels. x86_64 wheels serve: there every release has CUDA, so
# libtorch_cpu.so and libtorch_cuda.so are both seen. The wheels are large (5 GB): give a folder with
# those that you have, and the rest is downloaded into it.
FOR_3_11 = ("x86_64", "--python-version=3.11", "--abi=cp311")
RELEASES = [f"2.{minor}.0" for minor in range(9, 16)]
HEADERS = re.compile(
    r"torch/include/torch/csrc/"
    r"(stable/.*|inductor/aoti_torch/c/shim.*|inductor/aoti_torch/generated/.*)\.h"
)
DECLARATION = re.compile(r"\b((?:aoti_)?torch_\w+)\s*\(")
LIBRARIES = {"torch/lib/libtorch_cpu.so": "cpu", "torch/lib/libtorch_cuda.so": "cuda"}


def symbols_of(wheel: Path) -> list[dict[str, Any]]:
    (item,) = ask("dump", "--symbols", wheel)["items"]
    symbols: list[dict[str, Any]] = item["symbols"]
    return symbols


def declared(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as members:
        headers = [members.read(name) for name in members.namelist() if HEADERS.fullmatch(name)]
    return {name for text in headers for name in DECLARATION.findall(text.decode())}


def write_torch_shims(folders: list[Path]) -> None:
    first: dict[str, tuple[str, str]] = {}
    for release in RELEASES:
        folder, pattern = (
            (folders or [Path("build/tables/torch")])[0],
            f"torch-{release}-*x86_64.whl",
        )
        wheel = pypi.wheel(f"torch=={release}", folder, *FOR_3_11, pattern=pattern)
        exported = {
            symbol["name"]: LIBRARIES[symbol["library"]]
            for symbol in symbols_of(wheel)
            if symbol["defined"] and symbol["library"] in LIBRARIES
        }
        new = sorted((declared(wheel) & exported.keys()) - first.keys())
        first |= {name: (release.removesuffix(".0"), exported[name]) for name in new}
        print(f"torch {release}: {len(new)} new functions")
    rows = [(name, minor, library) for name, (minor, library) in first.items()]
    rows.sort(key=lambda row: (by_version(row[1]), row[2], row[0]))
    head = [
        "The C functions of torch's stable ABI, declared in its headers and exported by its",
        "libraries: the first torch that has each, and libtorch_cpu or libtorch_cuda.",
        f"Source: torch's x86_64 wheels on PyPI, {' '.join(RELEASES)},",
        "read by wheelscope. Generator: make table TABLE=torch_shims",
    ]
    write_csv("torch_shims.csv", head, "symbols,first_version,library", rows)


# --- torch_symbols.csv: C++ symbols of torch that came or went, by first and last version -----------
# Torch has a hundred thousand, and half of them change. Only those that extensions use count: give a
# folder with wheels of extensions, old and new. For each version of torch, the table keeps MOST
# symbols that came with it, and as many that it was the last to have: those that the most wheels
# need. Torch's x86_64 wheels (11 GB) are downloaded into the folder one after the other, and deleted.
MINORS = [f"2.{minor}" for minor in range(16)]
MOST = 20
TORCHS = re.compile(r"_Z(N|NK|TVN|TIN)?(2at|3c10|5torch|\d+THP)")


def torch_names(wheel: Path, defined: bool) -> set[str]:
    names = {one["name"] for one in symbols_of(wheel) if one["defined"] == defined}
    return {name for name in names if TORCHS.match(name)}


def exported_by(minor: str, folder: Path) -> set[str]:
    """Returns the symbols that the last release of a minor version exports."""
    wheel = pypi.wheel(f"torch=={minor}.*", folder, *FOR_3_11, pattern="torch-2*.whl")
    found = torch_names(wheel, defined=True)
    wheel.unlink()
    print(f"torch {minor}: {len(found):,} symbols", flush=True)
    return found


def write_torch_symbols(folders: list[Path]) -> None:
    (folder,) = folders
    wheels = [torch_names(wheel, defined=False) for wheel in sorted(folder.glob("*.whl"))]
    used = Counter(symbol for needed in wheels for symbol in needed)
    torches = {minor: exported_by(minor, folder) & used.keys() for minor in MINORS}
    came: dict[str, list[tuple[str, str, str]]] = {minor: [] for minor in MINORS[1:]}
    went: dict[str, list[tuple[str, str, str]]] = {minor: [] for minor in MINORS[:-1]}
    for symbol, _ in sorted(used.items(), key=lambda one: (-one[1], one[0])):
        have = [index for index, minor in enumerate(MINORS) if symbol in torches[minor]]
        if not have or have[-1] - have[0] >= len(have):
            continue  # unknown, or with a gap
        first, last = MINORS[have[0]], MINORS[have[-1]]
        row = (symbol, first, last if last in went else "")
        for group in (came.get(first), went.get(last)):
            if group is not None and len(group) < MOST:
                group.append(row)
    rows = {row for group in (*came.values(), *went.values()) for row in group}
    head = [
        "C++ symbols of torch that came or went: the first version that has each, and the last one, if that",
        "is not the newest.",
        f"Source: torch's x86_64 wheels on PyPI, {MINORS[0]} to {MINORS[-1]}, and what {len(wheels)} wheels need.",
        "Generator: make table TABLE=torch_symbols FROM=FOLDER",
    ]
    ordered = sorted(rows, key=lambda row: (by_version(row[1]), row[2:], row[0]))
    write_csv("torch_symbols.csv", head, "symbols,first_version,last_version", ordered)


def write_cudart(_: list[Path]) -> None:
    """Writes each innermost list or map on one line."""
    text = json.dumps(cudart.table(), indent=1, ensure_ascii=False)
    text = re.sub(r"[\[{][^\[\]{}]*[\]}]", lambda leaf: re.sub(r"\n\s*", " ", leaf[0]), text)
    (DATA / "cudart.json").write_text(text + "\n")


def write_attributes(_: list[Path]) -> None:
    head = [
        "Names in modules that a release of a distribution brought or removed.",
        "Source: wheels on PyPI. Generator: make table TABLE=attributes",
    ]
    write_csv(
        "attributes.csv", head, "names,module,distribution,brought,removed", attributes.rows()
    )


TABLES: dict[str, Callable[[list[Path]], None]] = {
    "attributes": write_attributes,
    "cuda_libraries": write_cuda_libraries,
    "cudart": write_cudart,
    "driver_symbols": write_driver_symbols,
    "manylinux": write_manylinux,
    "platform_symbols": write_platform_symbols,
    "python_abi3": write_python_abi3,
    "torch_shims": write_torch_shims,
    "torch_symbols": write_torch_symbols,
}


def main() -> None:
    if not sys.argv[1:] or sys.argv[1] not in TABLES:
        sys.exit(f"error: give the table: make table TABLE=name, one of: {' '.join(TABLES)}")
    TABLES[sys.argv[1]](list(map(Path, sys.argv[2:])))


if __name__ == "__main__":
    main()

"""The dynamic loader of this machine, as the reference for what a wheel's library lacks.

In its tracing mode the loader maps a library and everything it needs, binds every symbol
(LD_BIND_NOW) and reports each missing one, without running any code of the library. Extensions of
torch are traced with the libraries of the corpus' torch available, as after `import torch`.
"""

import functools
import os
import platform
import re
import struct
import subprocess
import zipfile
from pathlib import Path
from typing import Any

from validation import program
from validation.corpus.reference import Facts, Reference, elf_files
from validation.tables import read_policies

DEFAULT_FOLDER = Path("/lib/x86_64-linux-gnu")  # also searched, as by ld.so
LOADER = Path("/lib64/ld-linux-x86-64.so.2")
X86_64 = 62
SHARED = 3  # ET_DYN
PYTHON = re.compile(r"_?Py")
DRIVER = {"libcuda.so.1", "libnvidia-ml.so.1", "libnvcuvid.so.1", "libnvidia-encode.so.1"}
POLICIES = "manylinux-policy.json"
TORCH = "torch-2.15.0-cp311-cp311-manylinux_2_28_x86_64.whl"


def can_be_traced(file: Path) -> bool:
    """True for a shared library for this machine that was linked with glibc."""
    with file.open("rb") as stream:
        head = stream.read(20)
    kind, machine = struct.unpack_from("<HH", head, 16)
    return (kind, machine, head[4]) == (SHARED, X86_64, 2) and b".so" in file.name.encode()


def torch_libraries(folder: Path) -> Path:
    """Unpacks the corpus' torch, once."""
    tree = folder / "providers" / TORCH.removesuffix(".whl")
    if not tree.exists():
        with zipfile.ZipFile(folder / TORCH) as members:
            wanted = [name for name in members.namelist() if name.startswith("torch/lib/lib")]
            members.extractall(tree, wanted)
    return tree / "torch/lib"


def libraries_here() -> dict[str, Path]:
    """Returns the libraries of this machine that its loader finds without a path, by name."""
    listed = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True).stdout
    found = re.findall(r"^\s*(\S+) \(libc6,x86-64.*=> (\S+)$", listed, re.MULTILINE)
    return {name: Path(path) for name, path in reversed(found)}


@functools.cache
def promised_elsewhere() -> set[str]:
    """Returns libraries that `link` leaves to the GPU's driver or to the system because every
    manylinux system has them; this machine may still lack them."""
    return DRIVER.union(*(policy["lib_whitelist"] for policy in read_policies(POLICIES)))


def needed_by(file: Path) -> set[str]:
    done = subprocess.run(["readelf", "-dW", file], capture_output=True, text=True)
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", done.stdout))


def uses_torch(needed: set[str]) -> bool:
    return any(name.startswith(("libtorch", "libc10")) for name in needed)


def trace(file: Path, search: list[Path]) -> str:
    paths = {"LD_LIBRARY_PATH": ":".join(map(str, search))} if search else {}
    mode = {"LD_TRACE_LOADED_OBJECTS": "1", "LD_WARN": "yes", "LD_BIND_NOW": "yes"}
    done = subprocess.run(
        [LOADER, file],
        env={"PATH": os.environ["PATH"], **mode, **paths},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    return done.stdout


def ask_file(file: Path, folder: Path) -> dict[str, Any] | None:
    needed = needed_by(file)
    output = trace(file, [torch_libraries(folder)] if uses_torch(needed) else [])
    if re.search(r"version `GLIBC(XX)?_[\d.]+' not found", output) or "error while" in output:
        return None  # this machine is older than the wheel's, or the loader refuses the file
    absent = set(re.findall(r"^\s*(\S+) => not found", output, re.MULTILINE))
    found: dict[str, Any] = {"missing_libraries": sorted(absent & needed)}
    if not absent:
        undefined = re.findall(r"undefined symbol: (\S+)\s.*\((.*)\)$", output, re.MULTILINE)
        found["missing_symbols"] = sorted(
            {
                symbol.rstrip(",")
                for symbol, where in undefined
                if where == str(file) and not PYTHON.match(symbol)
            }
        )
    return found


def ask(wheel: Path, tree: Path) -> Facts:
    if "x86_64" not in wheel.name or "musllinux" in wheel.name:
        return {}
    facts: Facts = {}
    for file in filter(can_be_traced, elf_files(tree)):
        found = ask_file(file, wheel.parent)
        if found is not None:
            facts[file.relative_to(tree).as_posix()] = found
    return facts


def ours(item: Any, wheel: Path, theirs: Facts) -> Facts:
    """Returns what `link` misses in the libraries that the loader was asked about, with the same
    torch and the same libraries of this machine."""
    if not theirs:
        return {}
    needed = {name for library in item["elf"] for name in library["needed"]}
    inside = {Path(library["path"]).name for library in item["elf"]}
    torch = uses_torch(needed) and wheel.name != TORCH
    here = libraries_here()
    system = [here[name] for name in sorted({*needed, "libc.so.6"}) if name in here]
    system += [path for path in map(DEFAULT_FOLDER.joinpath, needed - here.keys()) if path.exists()]
    report = program.ask("link", wheel, *[wheel.parent / TORCH] * torch, *system)["link"]
    facts: Facts = {}
    for member, said in theirs.items():
        names = {n for n, users in report["missing_libraries"].items() if member in users}
        elsewhere = set(said["missing_libraries"]) & promised_elsewhere()
        if Path(member).name in needed:
            # Traced alone, it lacks libraries that its users bring, by their RPATH or earlier; they
            # are traced as well, and `link` judges it together with them.
            elsewhere |= set(said["missing_libraries"]) & inside
        facts[member] = {"missing_libraries": sorted(names | elsewhere)}
        if "missing_symbols" in said:
            symbols = {
                m["symbol"].split("@")[0] for m in report["missing"] if m["library"] == member
            }
            facts[member]["missing_symbols"] = sorted(s for s in symbols if not PYTHON.match(s))
    return facts


GLIBC = Reference("loader", lambda: " ".join(platform.libc_ver()), ask, ours)

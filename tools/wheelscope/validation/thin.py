"""Thins wheels for GPUs. Compares what is left with cuobjdump's listing and with a second reading
of the rule for what a GPU chooses, and what `show` and `cover` say with what they said before:
`python -m validation.thin FOLDER`.

With --download the wheels are those of a list, tests/corpus.txt, each of which is deleted
afterwards.
"""

import argparse
import collections
import functools
import io
import json
import re
import struct
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from elftools.elf.elffile import ELFFile

from validation.corpus import download
from validation.corpus.references.device_code import is_toolbox, listing
from validation.program import ROOT, WHEELSCOPE

GPUS = ("7.5", "8.0", "8.6", "8.9", "9.0", "10.0", "12.0")
MAGIC = struct.pack("<IHH", 0xBA55ED50, 1, 16)
Entry = tuple[str, int, str]  # kind, architecture, suffix
Counts = collections.Counter[str]


def containers(data: bytes) -> Iterator[list[Entry]]:
    """Yields the entries of each fat binary in a file, found by their first bytes."""
    at = data.find(MAGIC)
    while at >= 0:
        end = at + 16 + struct.unpack_from("<Q", data, at + 8)[0]
        entries, entry = [], at + 16
        while entry + 64 <= end <= len(data):
            kind, header = struct.unpack_from("<HxxI", data, entry)
            size, arch, flags = struct.unpack_from("<Q12xI8xQ", data, entry + 8)
            suffix = "a" if flags & 0x100000 else "f" if flags & 0x200000 else ""
            entries.append(({1: "ptx", 2: "elf"}.get(kind, "other"), arch, suffix))
            entry += header + size
        yield entries
        at = data.find(MAGIC, max(at + 16, end if end <= len(data) else 0))


def runs(entry: Entry, gpu: int) -> bool:
    """True if an entry runs on a GPU by NVIDIA's rule; not for Jetson boards."""
    kind, arch, suffix = entry
    same_major = arch // 10 == gpu // 10
    if suffix == "a":
        return arch == gpu
    if kind == "elf" and arch in (53, 62, 72, 87, 101, 110):
        return False
    if kind == "elf" or suffix == "f":
        return same_major and arch <= gpu
    return kind == "ptx" and arch <= gpu


def chosen(entries: list[Entry], gpu: int) -> list[Entry]:
    for kind in ("elf", "ptx"):
        able = [entry for entry in entries if entry[0] == kind and runs(entry, gpu)]
        if able:
            best = max(arch for _, arch, _ in able)
            return [entry for entry in able if entry[1] == best]
    return []


def listed(file: Path, corpus: Path) -> Counts:
    """Returns what cuobjdump finds, including relocatable code."""
    found: Counts = collections.Counter()
    kind = ""
    for line in listing(file, corpus)[0].splitlines():
        if line.startswith("Fatbin "):
            kind = line.split()[1]
        elif line.startswith("arch = sm_"):
            found[f"{kind} {re.sub('[af]$', '', line[10:])}"] += 1
    return found


def device_code(data: bytes) -> bytes:
    """Returns what cuobjdump reads of a file: cuSPARSELt has more fat binaries, in a section that
    only it knows."""
    if not data.startswith(b"\x7fELF"):
        return data
    sections = ELFFile(io.BytesIO(data)).iter_sections()
    return b"".join(s.data() for s in sections if s.name in (".nv_fatbin", "__nv_relfatbin"))


@functools.lru_cache(100)
def modules_of(wheel: Path, member: str) -> list[list[Entry]]:
    with zipfile.ZipFile(wheel) as members:
        return list(containers(device_code(members.read(member))))


def expected(modules: list[list[Entry]], gpu: int) -> tuple[Counts, int]:
    """Returns what must be left, and how many fat binaries have nothing for the GPU and keep one
    entry."""
    counts: Counts = collections.Counter()
    unserved = 0
    for entries in modules:
        left = chosen(entries, gpu)
        unserved += bool(entries) and not left
        counts.update(f"{kind} {arch}" for kind, arch, _ in left)
    return counts, unserved


def scope(*words: str | Path) -> Any:
    said = subprocess.run([WHEELSCOPE, *words, "--json"], stdout=subprocess.PIPE, text=True).stdout
    return json.loads(said) if said else {}


ask = functools.lru_cache(4)(scope)  # for commands that write nothing, of two wheels


def verdicts(wheel: Path, gpu: str) -> dict[str, Any]:
    """Returns what the commands say about a wheel: for a GPU, and for users."""
    [item] = ask("show", wheel)["items"]
    cells = ask("cover", "--matrix", ROOT / "tests/matrix.toml", wheel)["cells"]
    return {
        "show": {
            library["library"]: (one["served"], one["by"], one.get("fatbins_unserved"))
            for library in item["cuda"]["libraries"]
            for one in library["gpus"]
            if one["capability"] == gpu and "loose file" not in library["library"]
        },
        "cover": [
            (bool(cell["wheel"]), [one["reason"] for one in cell["reasons"]]) for cell in cells
        ],
    }


def compare(wheel: Path, gpu: str, folder: Path) -> str:
    """Returns how a thinned wheel differs from what it should be. Files that are not loaded as they
    are (objects, loose code) are left out."""
    thinned = scope("thin", wheel, "--gpu", gpu, "-o", folder).get("thin")
    if not thinned:
        return "not served"
    [thin] = thinned
    if not thin["written"]:
        return "nothing to cut"
    new = Path(thin["written"])
    counts = [file["modules"].get(gpu, {}) for file in thin["files"]]
    wrong = []
    answer = scope("thin", "--check", wheel, new)["thin_check"]
    served = any(count.get("native") for count in counts)
    if not answer["thinning"] or (served and gpu not in answer["same_for"]):
        wrong.append(f"--check says {answer}")
    before, after = verdicts(wheel, gpu), verdicts(new, gpu)
    wrong += [
        f"{command} says otherwise" for command in before if before[command] != after[command]
    ]
    with zipfile.ZipFile(new) as members:
        for file in thin["files"]:
            loose = file["path"].endswith((".o", ".a", ".cubin", ".ptx"))
            if file["removed"] or file["keeps_zeros"] == "not-shared" or loose:
                continue
            modules = modules_of(wheel, file["path"])
            wanted, unserved = expected(modules, int(gpu.replace(".", "")))
            path = folder / "file"
            path.write_bytes(members.read(file["path"]))
            found = listed(path, wheel.parent)
            if wanted - found or (found - wanted).total() != unserved:
                wrong.append(
                    f"{file['path']}: cuobjdump lists {dict(found)}, not {dict(wanted)} and {unserved} more"
                )
    return "; ".join(wrong) or "the same"


def wheels(arguments: argparse.Namespace) -> Iterator[Path]:
    if not arguments.download:
        yield from sorted(arguments.folder.glob("*.whl"))
        return
    listed = download.read_list(arguments.download)
    listed.sort(key=lambda w: not is_toolbox(w.file_name))  # its program reads the others
    for wheel in download.fetched(listed, arguments.folder):
        yield wheel
        if not is_toolbox(wheel.name):
            wheel.unlink()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--gpu", action="append", choices=GPUS)
    parser.add_argument("--download", type=Path, metavar="LIST", help="the wheels of a list")
    arguments = parser.parse_args()
    differ = False
    for wheel in wheels(arguments):
        items = ask("show", wheel).get("items")
        if not items or not items[0]["cuda"]["libraries"]:
            continue
        for gpu in arguments.gpu or GPUS:
            with tempfile.TemporaryDirectory(dir=wheel.parent) as folder:
                said = compare(wheel, gpu, Path(folder))
            differ |= said not in ("the same", "not served", "nothing to cut")
            print(f"{gpu:5} {wheel.name}: {said}", flush=True)
    sys.exit(differ)


if __name__ == "__main__":
    main()

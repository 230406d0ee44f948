"""Thins wheels for GPUs and compares what is left with cuobjdump's listing, with a second reading of
the rule for what a GPU chooses, and with `show` before and after: `python -m validation.thin FOLDER`.
"""

import argparse
import collections
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

from validation.corpus.program import WHEELSCOPE
from validation.corpus.references.device_code import CUOBJDUMP, older_cuobjdump

GPUS = ("7.5", "8.0", "8.6", "8.9", "9.0", "10.0", "12.0")
MAGIC = struct.pack("<IHH", 0xBA55ED50, 1, 16)
Entry = tuple[str, int, str]  # kind, architecture, suffix
Counts = collections.Counter[str]


def containers(data: bytes) -> Iterator[list[Entry]]:
    """The entries of each fat binary in a file, found by their first bytes."""
    at = data.find(MAGIC)
    while at >= 0:
        end = at + 16 + struct.unpack_from("<Q", data, at + 8)[0]
        entries, entry = [], at + 16
        while entry + 64 <= end <= len(data):
            kind, header = struct.unpack_from("<HxxI", data, entry)
            size, arch, flags = (
                struct.unpack_from("<Q", data, entry + 8)[0],
                struct.unpack_from("<I", data, entry + 28)[0],
                struct.unpack_from("<Q", data, entry + 40)[0],
            )
            suffix = "a" if flags & 0x100000 else "f" if flags & 0x200000 else ""
            entries.append(({1: "ptx", 2: "elf"}.get(kind, "other"), arch, suffix))
            entry += header + size
        yield entries
        at = data.find(MAGIC, max(at + 16, end if end <= len(data) else 0))


def runs(entry: Entry, gpu: int) -> bool:
    """NVIDIA's rule, for GPUs that are not Jetson boards."""
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
    """What cuobjdump finds, relocatable code as well."""
    done = subprocess.run([CUOBJDUMP, "-all", file], capture_output=True, text=True)
    if done.returncode not in (0, 255):  # it gives up on some old cubins
        tool = older_cuobjdump(corpus)
        done = subprocess.run([tool, "-all", file], capture_output=True, text=True)
    found: Counts = collections.Counter()
    kind = ""
    for line in done.stdout.splitlines():
        if line.startswith("Fatbin "):
            kind = line.split()[1]
        elif line.startswith("arch = sm_"):
            found[f"{kind} {re.sub('[af]$', '', line[10:])}"] += 1
    return found


def expected(data: bytes, gpu: int) -> tuple[Counts, int]:
    """What must be left, and how many fat binaries have nothing for the GPU: they keep one entry."""
    counts: Counts = collections.Counter()
    unserved = 0
    for entries in containers(data):
        left = chosen(entries, gpu)
        unserved += bool(entries) and not left
        counts.update(f"{kind} {arch}" for kind, arch, _ in left)
    return counts, unserved


def verdicts(wheel: Path, gpu: str) -> dict[str, Any]:
    done = subprocess.run([WHEELSCOPE, "show", "--json", wheel], capture_output=True, text=True)
    [item] = json.loads(done.stdout)["items"]
    return {
        library["library"]: [
            (one["served"], one["by"], one.get("fatbins_unserved"))
            for one in library["gpus"]
            if one["capability"] == gpu
        ]
        for library in item["cuda"]["libraries"]
        if "loose file" not in library["library"]
    }


def compare(wheel: Path, gpu: str, folder: Path) -> list[str]:
    """The differences; files that are not loaded as they are (objects, loose code) are left out."""
    done = subprocess.run(
        [WHEELSCOPE, "thin", "--json", wheel, "--gpu", gpu, "-o", folder],
        capture_output=True,
        text=True,
    )
    if done.returncode or not json.loads(done.stdout)["thin"][0]["written"]:
        return ["not thinned: " + (done.stderr.strip() or "nothing to cut")]
    [thin] = json.loads(done.stdout)["thin"]
    new = Path(thin["written"])
    wrong = []
    check = subprocess.run(
        [WHEELSCOPE, "thin", "--check", "--json", wheel, new], capture_output=True
    )
    answer = json.loads(check.stdout)["thin_check"]
    served = any(file["modules"].get(gpu, {}).get("native") for file in thin["files"])
    if not answer["thinning"] or (served and gpu not in answer["same_for"]):
        wrong.append(f"--check says {answer}")
    if verdicts(wheel, gpu) != verdicts(new, gpu):
        wrong.append("show says otherwise of the GPU")
    with zipfile.ZipFile(wheel) as before, zipfile.ZipFile(new) as after:
        for file in thin["files"]:
            if (
                file["removed"]
                or file["keeps_zeros"] == "not-shared"
                or file["path"].endswith((".o", ".a", ".cubin", ".ptx"))
            ):
                continue
            wanted, unserved = expected(before.read(file["path"]), int(gpu.replace(".", "")))
            path = folder / "file"
            path.write_bytes(after.read(file["path"]))
            found = listed(path, wheel.parent)
            if wanted - found or (found - wanted).total() != unserved:
                wrong.append(
                    f"{file['path']}: cuobjdump lists {dict(found)}, not {dict(wanted)} and {unserved} more"
                )
    new.unlink()
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--gpu", action="append", choices=GPUS)
    parser.add_argument("--largest", type=float, default=1e12, help="bytes of a wheel")
    arguments = parser.parse_args()
    differing = thinned = 0
    for wheel in sorted(arguments.folder.glob("*.whl")):
        if wheel.stat().st_size > arguments.largest:
            continue
        for gpu in arguments.gpu or GPUS:
            with tempfile.TemporaryDirectory() as folder:
                wrong = compare(wheel, gpu, Path(folder))
            skipped = len(wrong) == 1 and wrong[0].startswith("not thinned")
            thinned += not skipped
            differing += bool(wrong) and not skipped
            print(f"{gpu:5} {wheel.name}: {'; '.join(wrong) or 'the same'}", flush=True)
    print(f"{thinned} thinned wheels, {differing} with differences")
    sys.exit(differing > 0)


if __name__ == "__main__":
    main()

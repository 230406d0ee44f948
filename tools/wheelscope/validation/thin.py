"""Thins wheels for GPUs and compares what is left with cuobjdump's listing, with a second reading of
the rule for what a GPU chooses, and what `show` and `cover` say of it with what they said before:
`python -m validation.thin FOLDER`.

With --download the wheels are those of a list, tests/corpus.txt or largest.txt, each of which is deleted
when it is done. What was measured of wheels with device code is kept in thin.json; --report prints what docs/thin.md
says of it.
"""

import argparse
import collections
import functools
import io
import json
import re
import statistics
import struct
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from elftools.elf.elffile import ELFFile

from validation.corpus import download
from validation.corpus.download import ROOT
from validation.corpus.program import WHEELSCOPE
from validation.corpus.references.device_code import CUOBJDUMP, is_toolbox, older_cuobjdump

MEASURED = Path(__file__).with_name("thin.json")
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
            size, arch, flags = struct.unpack_from("<Q12xI8xQ", data, entry + 8)
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


def device_code(data: bytes) -> bytes:
    """What cuobjdump reads of a file: cuSPARSELt has more fat binaries, in a section that it alone knows."""
    if not data.startswith(b"\x7fELF"):
        return data
    sections = ELFFile(io.BytesIO(data)).iter_sections()
    return b"".join(s.data() for s in sections if s.name in (".nv_fatbin", "__nv_relfatbin"))


@functools.lru_cache(100)
def modules_of(wheel: Path, member: str) -> list[list[Entry]]:
    with zipfile.ZipFile(wheel) as members:
        return list(containers(device_code(members.read(member))))


def expected(modules: list[list[Entry]], gpu: int) -> tuple[Counts, int]:
    """What must be left, and how many fat binaries have nothing for the GPU: they keep one entry."""
    counts: Counts = collections.Counter()
    unserved = 0
    for entries in modules:
        left = chosen(entries, gpu)
        unserved += bool(entries) and not left
        counts.update(f"{kind} {arch}" for kind, arch, _ in left)
    return counts, unserved


class Run(NamedTuple):
    answer: Any  # of wheelscope
    cost: list[float]  # seconds of the processor, megabytes at its peak


# Runs a program and says what it used. A process begins with the peak of the one that starts it, so that one is small.
USED = """
import resource, subprocess, sys
subprocess.run(sys.argv[2:])
used = resource.getrusage(resource.RUSAGE_CHILDREN)
open(sys.argv[1], "w").write(f"{used.ru_utime + used.ru_stime} {used.ru_maxrss / 1024}")
"""


def scope(*words: str | Path) -> Run:
    with tempfile.NamedTemporaryFile() as used:
        command = [sys.executable, "-S", "-c", USED, used.name, WHEELSCOPE, *words, "--json"]
        said = subprocess.run(command, stdout=subprocess.PIPE, text=True).stdout
        cost = [round(float(number), 3) for number in Path(used.name).read_text().split()]
    return Run(json.loads(said) if said else {}, cost)


ask = functools.lru_cache(4)(scope)  # for commands that write nothing, of two wheels


def verdicts(wheel: Path, gpu: str) -> dict[str, Any]:
    """What the commands say of a wheel: for a GPU, and for users."""
    [item] = ask("show", wheel).answer["items"]
    cells = ask("cover", "--matrix", ROOT / "tests/matrix.toml", wheel).answer["cells"]
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


def compare(wheel: Path, gpu: str, sizes: bool, folder: Path) -> dict[str, Any]:
    """What a thinned wheel is like, and the differences, unless only sizes are asked for; files that
    are not loaded as they are (objects, loose code) are left out of those."""
    run = scope("thin", wheel, "--gpu", gpu, "-o", folder)
    if not run.answer.get("thin") or not run.answer["thin"][0]["written"]:
        return {"not thinned": "nothing to cut" if run.answer.get("thin") else "not served"}
    [thin] = run.answer["thin"]
    new = Path(thin["written"])
    counts = [file["modules"].get(gpu, {}) for file in thin["files"]]
    measured = {key: thin[key] for key in ("size", "installed")}
    measured |= {"jit": sum(count.get("jit", 0) for count in counts), "cost": run.cost}
    if sizes:
        return measured
    wrong = []
    answer = scope("thin", "--check", wheel, new).answer["thin_check"]
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
    return measured | {"differences": wrong}


def measure(wheel: Path, gpus: tuple[str, ...], sizes: bool) -> dict[str, Any] | None:
    """All that is to be known of a wheel; nothing if it has no device code."""
    shown = ask("show", wheel)
    if not shown.answer.get("items") or not shown.answer["items"][0]["cuda"]["libraries"]:
        return None
    with zipfile.ZipFile(wheel) as members:
        installed = sum(member.file_size for member in members.infolist())
    found: dict[str, Any] = {"size": wheel.stat().st_size, "installed": installed}
    found |= {"show": shown.cost, "gpus": {}}
    for gpu in gpus:
        with tempfile.TemporaryDirectory(dir=wheel.parent) as folder:
            said = compare(wheel, gpu, sizes, Path(folder))
        found["gpus"][gpu] = said
        words = said.get("not thinned") or "; ".join(said.get("differences", [])) or "the same"
        print(f"{gpu:5} {wheel.name}: {words}", flush=True)
    return found


def wheels(arguments: argparse.Namespace) -> Iterator[Path]:
    if not arguments.download:
        yield from sorted(arguments.folder.glob("*.whl"))
        return
    listed = download.read_list(arguments.download)
    left = [w for w in listed if is_toolbox(w.file_name) or w.file_name not in read()]
    left.sort(key=lambda w: not is_toolbox(w.file_name))  # the others are read with its program
    for wheel in download.fetched(left, arguments.folder):
        yield wheel
        if not is_toolbox(wheel.name):
            wheel.unlink()


def read() -> dict[str, Any]:
    return dict(json.loads(MEASURED.read_text())) if MEASURED.exists() else {}


def keep(name: str, found: dict[str, Any]) -> None:
    """A line for each wheel."""
    rows = read() | {name: found}
    lines = ",\n".join(f"{json.dumps(n)}: {json.dumps(rows[n])}" for n in sorted(rows))
    MEASURED.write_text(f"{{\n{lines}\n}}\n")


def table() -> Iterator[str]:
    """The largest wheels with their sizes by GPU, in Markdown."""
    yield f"| wheel | all | {' | '.join(GPUS)} |"
    yield f"|---|{'---:|' * (1 + len(GPUS))}"
    rows = read()
    for wheel in download.read_list(MEASURED.with_name("largest.txt")):
        row = rows.get(wheel.file_name, {"not thinned": "not measured", "gpus": {}})
        cells = [megabytes(row), *(megabytes(row["gpus"].get(gpu, row)) for gpu in GPUS)]
        name = " ".join(wheel.file_name.split("-")[:2]).replace("_", "-")
        yield f"| {name} | {' | '.join(cells)} |"


def megabytes(row: dict[str, Any]) -> str:
    if "size" not in row:
        return {"not served": "none", "nothing to cut": "all"}.get(row["not thinned"], "?")
    return f"{row['size'] / 1e6:.0f}, {row['installed'] / 1e6:.0f}"


def report() -> None:
    rows = read().values()
    said = [one for row in rows for one in row["gpus"].values()]
    compared = [one["differences"] for one in said if "differences" in one]
    print(f"{len(rows)} wheels with device code")
    print(f"{len(compared)} thinned wheels compared, {sum(map(bool, compared))} with differences")
    print(collections.Counter(one.get("not thinned", "thinned") for one in said))
    for number, what in enumerate(("seconds", "megabytes")):
        ratios = [
            one["cost"][number] / row["show"][number]
            for row in rows
            for one in row["gpus"].values()
            if "cost" in one
        ]
        above = sum(ratio > 2 for ratio in ratios)
        print(f"{what} of thin by those of show: median {statistics.median(ratios):.2f},", end=" ")
        print(f"at most {max(ratios):.2f}, above 2 in {above} of {len(ratios)} runs")
    print("\n".join(table()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--gpu", action="append", choices=GPUS)
    parser.add_argument("--download", type=Path, metavar="LIST", help="the wheels of a list")
    parser.add_argument("--sizes", action="store_true", help="compare nothing, only measure")
    parser.add_argument("--report", action="store_true", help="print what was measured")
    arguments = parser.parse_args()
    if arguments.report:
        report()
        return
    for wheel in wheels(arguments):
        if found := measure(wheel, tuple(arguments.gpu or GPUS), arguments.sizes):
            keep(wheel.name, found)
    said = [one for row in read().values() for one in row["gpus"].values()]
    sys.exit(any(one.get("differences") for one in said))


if __name__ == "__main__":
    main()

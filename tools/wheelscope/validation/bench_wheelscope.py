"""Measures `wheelscope show` beside auditwheel and unzip on two large wheels and a small one.

Prints a table and writes validation/bench_wheelscope.json. All commands of a round run one after the
other, so that a busy machine slows all of them; each figure is the median of the rounds.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

REPORT = Path("validation/bench_wheelscope.json")
WHEELSCOPE = "build/bin/wheelscope"
LARGE = [f"torch-2.15.0-cp311-cp311-manylinux_2_28_{arch}.whl" for arch in ("x86_64", "aarch64")]
SMALL = (
    "coverage-7.17.2-cp311-cp311-"
    "manylinux2014_aarch64.manylinux_2_17_aarch64.manylinux_2_28_aarch64.whl"
)
MIB = 1 << 20


@dataclass(frozen=True)
class Run:
    seconds: float
    cpu_seconds: float
    peak_bytes: int


def run(command: list[str]) -> Run:
    """Runs a command to its end, output thrown away; fails if it cannot be run."""
    start = perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):  # 1: wheelscope has findings
        sys.exit(f"error: {command} ended with {process.returncode}")
    return Run(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def median_runs(commands: dict[str, list[str]], rounds: int) -> dict[str, Run]:
    runs: dict[str, list[Run]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            runs[name].append(run(command))
    return {
        name: Run(
            statistics.median(r.seconds for r in done),
            statistics.median(r.cpu_seconds for r in done),
            max(r.peak_bytes for r in done),
        )
        for name, done in runs.items()
    }


def memory_allowed(wheel: Path) -> int:
    """The two largest members and 64 MiB."""
    with zipfile.ZipFile(wheel) as members:
        sizes = sorted((info.file_size for info in members.infolist()), reverse=True)
    return sum(sizes[:2]) + 64 * MIB


def measured(wheel: Path) -> dict[str, Any]:
    """The three programs on one wheel; prints a table too."""
    runs = median_runs(
        {
            "wheelscope show": [WHEELSCOPE, "show", "--json", str(wheel)],
            "unzip -p": ["unzip", "-p", str(wheel)],
            "auditwheel show": [sys.executable, "-m", "auditwheel", "show", str(wheel)],
        },
        rounds=3,
    )
    ours, allowed = runs["wheelscope show"], memory_allowed(wheel)
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.0f} MB")
    for name, run in runs.items():
        ratio, peak = run.seconds / ours.seconds, run.peak_bytes / MIB
        times = f"{run.seconds:7.2f} s  {ratio:5.1f}x  (CPU {run.cpu_seconds:6.2f} s)"
        print(f"  {name:16} {times}  peak {peak:6.0f} MiB")
    print(f"  peak memory allowed (two largest members + 64 MiB): {allowed / MIB:.0f} MiB")
    return {
        "wheel": wheel.name,
        "bytes": wheel.stat().st_size,
        "peak_bytes_allowed": allowed,
        "rows": [
            {
                "name": name,
                "seconds": round(run.seconds, 3),
                "cpu_seconds": round(run.cpu_seconds, 3),
                "times_wheelscope": round(run.seconds / ours.seconds, 2),
                "peak_bytes": run.peak_bytes,
            }
            for name, run in runs.items()
        ],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("build/corpus"))
    folder = parser.parse_args().folder
    for name in (*LARGE, SMALL):
        if not (folder / name).exists():
            sys.exit(f"error: {folder / name} is missing; run `make corpus`")
        # Into the page cache, for everyone alike; this process stays small, as a child's peak
        # memory counts from its parent's size.
        with (folder / name).open("rb") as stream:
            while stream.read(MIB):
                pass

    small = folder / SMALL
    large = [measured(folder / name) for name in LARGE]
    on_small = median_runs({"wheelscope show": [WHEELSCOPE, "show", str(small)]}, rounds=21)
    seconds = on_small["wheelscope show"].seconds
    size = small.stat().st_size
    print(f"{SMALL}: {size / 1e3:.0f} KB\n  wheelscope show  {seconds * 1e3:7.1f} ms")
    report = {
        "cpus": os.cpu_count(),
        "machine": os.uname().machine,
        "large": large,
        "small": {"wheel": SMALL, "bytes": size, "seconds": round(seconds, 5)},
    }
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    REPORT.write_text(json.dumps(report, indent=2) + "\n")
    print(f"wrote {REPORT}")


if __name__ == "__main__":
    main()

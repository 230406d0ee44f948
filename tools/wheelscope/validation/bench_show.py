"""Times `wheelscope show` beside auditwheel and unzip, as a Markdown table: `python -m validation.bench_show WHEEL ...`

The commands of a round run one after the other, so that a busy machine slows all of them; times are medians.
"""

import os
import statistics
import subprocess
import sys
from pathlib import Path
from time import perf_counter

ROUNDS = 3
COMMANDS = {
    "wheelscope show": ["build/bin/wheelscope", "show", "--json"],
    "unzip -p": ["unzip", "-p"],
    "auditwheel show": [sys.executable, "-m", "auditwheel", "show"],
}


def run(command: list[str]) -> tuple[float, float, float]:
    """Returns the elapsed seconds, the processor's seconds, and the peak memory in MiB."""
    start = perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):  # 1: wheelscope has findings
        sys.exit(f"error: {command} ended with {process.returncode}")
    return perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main() -> None:
    print("| wheel | command | seconds | of the processor | MiB at the peak |")
    print("|---|---|---:|---:|---:|")
    for wheel in sys.argv[1:]:
        size = f"{Path(wheel).name}, {Path(wheel).stat().st_size / 1e6:.1f} MB"
        subprocess.run(["cat", wheel], stdout=subprocess.DEVNULL, check=True)  # into the page cache
        rounds = [{n: run([*c, wheel]) for n, c in COMMANDS.items()} for _ in range(ROUNDS)]
        for name in COMMANDS:
            seconds, processor, peak = zip(*(one[name] for one in rounds), strict=True)
            times = f"{statistics.median(seconds):.3f} | {statistics.median(processor):.3f}"
            print(f"| {size} | `{name}` | {times} | {max(peak):.0f} |", flush=True)


if __name__ == "__main__":
    main()

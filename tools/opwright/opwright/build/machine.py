"""Finds out what a build may use: cores, free memory, and the GPUs in this machine.

A container or a batch job sees the whole machine's memory but may use its cgroup's only, and is
killed when it takes more; so limits of cgroups, version 1 and 2, count too.
"""

import math
import os
import shutil
import subprocess
from pathlib import Path

COMPILER_BYTES = 512 << 20  # twice the most that one compiler was seen to use: 229 MiB
CGROUPS = Path("/sys/fs/cgroup")
PROC = Path("/proc")


def default_jobs(threads: int = 1) -> int:
    """Compilers at once, each with `threads` of its own: as many as cores and memory allow."""
    fitting = free_memory() // (COMPILER_BYTES * threads)
    return max(1, min(cores(), fitting))


def nvcc_threads(sources: int, passes: int) -> int:
    """nvcc's --threads, for the cores that one job for each CUDA source would leave idle.

    It depends on nothing that changes between builds: another value compiles everything anew.
    """
    return max(1, min(cores() // sources, passes))


def cores() -> int:
    """The processors this process may run on, less where a cgroup limits its share of them."""
    count = len(os.sched_getaffinity(0))
    for group in _groups("cpu"):
        quota, period = _numbers(group / "cpu.max") or (
            *_numbers(group / "cpu.cfs_quota_us"),
            *_numbers(group / "cpu.cfs_period_us"),
        ) or (0, 0)  # fmt: skip
        if quota > 0 and period > 0:
            count = min(count, math.ceil(quota / period))
    return max(1, count)


def free_memory() -> int:
    """Bytes that can be taken before the kernel kills something."""
    lines = (line.split() for line in (PROC / "meminfo").read_text().splitlines())
    free = next(int(words[1]) << 10 for words in lines if words[0] == "MemAvailable:")
    for group in _groups("memory"):
        for limit_file, used_file in (
            ("memory.max", "memory.current"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes"),
        ):
            limit, used = _numbers(group / limit_file), _numbers(group / used_file)
            if limit and used:
                free = min(free, limit[0] - used[0] + _reclaimable(group))
    return max(0, free)


def gpu_targets() -> list[str]:
    """Compute capabilities of the GPUs here, such as "9.0", as the driver's nvidia-smi has them."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    query = [program, "--query-gpu=compute_cap", "--format=csv,noheader"]
    done = subprocess.run(query, capture_output=True, text=True)
    if done.returncode != 0:
        return []
    return sorted({line.strip() for line in done.stdout.splitlines() if line.strip()})


def _groups(controller: str) -> list[Path]:
    """The cgroups this process is in, each with those it lies in: a limit of any of them counts."""
    found = []
    for line in (PROC / "self/cgroup").read_text().splitlines():
        number, controllers, path = line.split(":", 2)
        if number == "0":  # version 2
            root = CGROUPS
        elif controller in controllers.split(","):
            root = CGROUPS / controllers
        else:
            continue
        # In a container the path may be the host's, which is not to be seen there: the root is.
        inside = root / path.lstrip("/")
        found += [group for group in (inside, *inside.parents) if group.is_relative_to(root)]
    return found


def _numbers(file: Path) -> tuple[int, ...]:
    """The numbers in a cgroup's file; none where it says "max" or does not exist."""
    try:
        return tuple(int(word) for word in file.read_text().split())
    except (OSError, ValueError):
        return ()


def _reclaimable(group: Path) -> int:
    """File pages that the group counts as used, and the kernel drops when memory is short."""
    try:
        lines = (line.split() for line in (group / "memory.stat").read_text().splitlines())
    except OSError:
        return 0
    values = {words[0]: int(words[1]) for words in lines}
    return values.get("total_inactive_file", values.get("inactive_file", 0))

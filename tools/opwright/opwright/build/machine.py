"""Finds out what a build may use: cores, free memory, and the GPUs in this machine.

A container or a batch job sees the whole machine's memory but may use only its cgroup's, and is
killed if it takes more; so limits of cgroups, versions 1 and 2, count too.
"""

import math
import os
import re
import shutil
import subprocess
from pathlib import Path

COMPILER_BYTES = 512 << 20  # over twice the most that one compiler was measured to use, 229 MiB
CGROUPS = Path("/sys/fs/cgroup")
PROC = Path("/proc")


def default_jobs(threads: int = 1) -> int:
    """Returns how many compilers, each with `threads` threads, cores and memory allow at once."""
    fitting = free_memory() // (COMPILER_BYTES * threads)
    return max(1, min(cores(), fitting))


def nvcc_threads(sources: int, passes: int) -> int:
    """Returns nvcc's --threads, which use the cores that one job per CUDA source would leave idle.

    It depends on nothing that changes between builds, because another value recompiles everything.
    """
    return max(1, min(cores() // sources, passes))


def cores() -> int:
    """Returns how many processors this process may use, by its affinity and its cgroups' limits."""
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
    """Returns how many bytes can be taken before the kernel kills a process."""
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
    """Returns the compute capabilities of this machine's GPUs, such as "9.0", from nvidia-smi."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    query = [program, "--query-gpu=compute_cap", "--format=csv,noheader"]
    done = subprocess.run(query, capture_output=True, text=True)
    if done.returncode != 0:
        return []
    return sorted(set(re.findall(r"^\s*(\d+\.\d)\s*$", done.stdout, re.MULTILINE)))


def _groups(controller: str) -> list[Path]:
    """Returns this process's cgroups and all that contain them, because a limit of any of them counts."""
    found = []
    for line in (PROC / "self/cgroup").read_text().splitlines():
        number, controllers, path = line.split(":", 2)
        if number == "0":  # version 2
            root = CGROUPS
        elif controller in controllers.split(","):
            root = CGROUPS / controllers
        else:
            continue
        # In a container the path may be the host's, which does not exist there; the root does.
        inside = root / path.lstrip("/")
        found += [group for group in (inside, *inside.parents) if group.is_relative_to(root)]
    return found


def _numbers(file: Path) -> tuple[int, ...]:
    """Returns the numbers in a cgroup's file; none if it says "max" or does not exist."""
    try:
        return tuple(int(word) for word in file.read_text().split())
    except (OSError, ValueError):
        return ()


def _reclaimable(group: Path) -> int:
    """Returns the bytes of file pages that count as used but that the kernel drops when memory is short."""
    try:
        lines = (line.split() for line in (group / "memory.stat").read_text().splitlines())
    except OSError:
        return 0
    values = {words[0]: int(words[1]) for words in lines}
    return values.get("total_inactive_file", values.get("inactive_file", 0))

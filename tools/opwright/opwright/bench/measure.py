"""Compares each op of an extension's list with torch's own: bandwidth over sizes and dtypes, and the cost of a call.

It writes benchmark.json (report.py lists its fields) and benchmark.png. The exit status is 1 if a promised ratio
was missed.

clock.py explains how times are taken. Inputs and outputs rotate among up to twenty sets to defeat the cache;
sizes for which that does not suffice are marked. The cost of a call is the host's time over many calls of 1,024
elements, ended by waiting for the GPU; with a gradient, `x` requires one, and under no_grad both tensors do.
"""

import argparse
import functools
import importlib
import itertools
import platform
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from opwright.bench import report
from opwright.bench.clock import Batch, gpu_clock, host_clock, rounds_of
from opwright.build.machine import free_memory
from opwright.build.project import BuildError, project_here

SMALL = 1024  # elements of a call whose work is negligible
ROW = 4096  # elements of a row of the inputs, at most


@dataclass(frozen=True)
class Contestant:
    name: str
    layer: str  #: torch, op (torch.ops) or wrapper (the Python function)
    beside: str  #: torch's own expression, with whose times the times are compared
    function: Callable[..., Tensor]
    arguments: Callable[[Tensor, Tensor], tuple[Any, ...]]
    moves: int  #: how many tensors of x's size a call reads and writes


@dataclass(frozen=True)
class Extension:
    """The package whose ops are timed."""

    name: str
    ops: tuple[Any, ...]

    @property
    def dtypes(self) -> list[str]:
        return list(dict.fromkeys(dtype for op in self.ops for dtype in op.dtypes))

    def build_info(self) -> Any:
        return importlib.import_module(f"{self.name}._opwright.library").build_info()


def find_extension(name: str | None) -> Extension:
    """Finds the named package, or that of the project in this folder."""
    name = name or project_here().name
    try:
        return Extension(name, importlib.import_module(f"{name}._ops").OPS)
    except ImportError as error:
        raise BuildError(
            f"{error}; install the package first (pip install .), or name another one: opwright bench PACKAGE"
        ) from error


def contestants(extension: Extension, dtype: torch.dtype) -> list[Contestant]:
    """Returns each op that has this dtype, and before it torch's own equivalent, which is entered only once."""
    entered: list[Contestant] = []
    for op in extension.ops:
        if str(dtype).removeprefix("torch.") not in op.dtypes:
            continue
        beside = f"{op.reference}({op.reference_arguments})"
        if beside not in {contestant.beside for contestant in entered}:
            arguments = functools.partial(op.arguments_for, reference=True)
            entered.append(
                Contestant(op.reference, "torch", beside, op.torchs_own(), arguments, op.moves)
            )
        raw = getattr(getattr(torch.ops, extension.name), op.name)
        for layer, function in (("op", raw), ("wrapper", op.function)):
            entered.append(Contestant(op.name, layer, beside, function, op.arguments_for, op.moves))
    return entered


class InputSets:
    """Several pairs of random inputs and as many places for outputs, used in turn."""

    def __init__(self, elements: int, dtype: torch.dtype, device: str, sets: int) -> None:
        width = min(elements, ROW)

        def random() -> Tensor:
            shape = (elements // width, width)
            if dtype.is_floating_point or dtype.is_complex:
                return torch.randn(shape, dtype=dtype, device=device)
            return torch.randint(0, 50, shape, dtype=dtype, device=device)

        self.outputs: list[Tensor | None] = [None] * sets
        self._pairs = [(random(), random()) for _ in range(sets)]
        self._turns: dict[Contestant, Iterator[tuple[int, tuple[Any, ...]]]] = {}

    def call(self, contestant: Contestant, times: int) -> None:
        if contestant not in self._turns:
            arguments = [contestant.arguments(x, y) for x, y in self._pairs]
            self._turns[contestant] = itertools.cycle(enumerate(arguments))
        function, outputs = contestant.function, self.outputs
        for place, arguments_ in itertools.islice(self._turns[contestant], times):
            outputs[place] = function(*arguments_)


def rows_of(entered: list[Contestant], times: list[list[float]]) -> Iterator[dict[str, Any]]:
    """Yields the reported times of each contestant and their ratio to torch's own in the same rounds."""
    reference = {c.beside: t for c, t in zip(entered, times, strict=True) if c.layer == "torch"}
    for contestant, own in zip(entered, times, strict=True):
        q1, median, q3 = (
            second * 1e6 for second in statistics.quantiles(own, n=4, method="inclusive")
        )
        ratios = [mine / its for mine, its in zip(own, reference[contestant.beside], strict=True)]
        yield {
            **{"name": contestant.name, "layer": contestant.layer, "beside": contestant.beside},
            **{"us": median, "us_q1": q1, "us_q3": q3, "time_ratio": statistics.median(ratios)},
        }


# --- What is measured ---------------------------------------------------------------------------


def measure_bandwidth(
    extension: Extension, device: str, name: str, exponent: int, rounds: int
) -> list[dict[str, Any]]:
    """Measures each op at one size; returns nothing if memory does not suffice."""
    elements, dtype = 1 << exponent, getattr(torch, name)
    operand = elements * dtype.itemsize
    cache = cache_bytes(device)
    if device == "cuda":
        calls = max(5, min(20, (1 << 28) // (3 * operand)))
    else:
        calls = max(1, min(1000, (1 << 22) // elements))
    sets = max(1, min(20, calls, -(-4 * cache // (3 * operand))))
    if (3 * sets + 1) * operand > 0.9 * free_bytes(device):
        return []
    inputs = InputSets(elements, dtype, device, sets)
    entered = [c for c in contestants(extension, dtype) if c.layer != "wrapper"]
    batches = [lambda n, c=c: inputs.call(c, n) for c in entered]
    clock = gpu_clock() if device == "cuda" else host_clock(device)
    rows = []
    measured = rows_of(entered, rounds_of(clock, batches, calls, rounds))
    for contestant, row in zip(entered, measured, strict=True):
        moved = operand * contestant.moves
        in_cache = sets * 3 * operand < 2 * cache
        where = {"dtype": name, "elements": elements, "in_cache": in_cache}
        rows.append({**where, **row, "gb_per_s": moved / row["us"] / 1e3})
    return rows


def measure_overhead(extension: Extension, device: str, rounds: int) -> list[dict[str, Any]]:
    """Measures the cost of a call with 1,024 float32 elements for torch's own, each op and each function: without
    a gradient, with one, and under no_grad with tensors that require one, as in inference."""
    x, y = (torch.randn(1, SMALL, device=device) for _ in range(2))
    entered = contestants(extension, torch.float32)
    rows = []
    for gradient, no_grad in ((False, False), (True, False), (True, True)):
        x.requires_grad_(gradient)
        y.requires_grad_(no_grad)

        def batch(contestant: Contestant) -> Batch:
            function, arguments = contestant.function, contestant.arguments(x, y)

            def call(count: int) -> None:
                for _ in itertools.repeat(None, count):
                    function(*arguments)

            return call

        with torch.set_grad_enabled(not no_grad):
            times = rounds_of(host_clock(device), [batch(c) for c in entered], 300, rounds)
        how = {"gradient": gradient and not no_grad, "no_grad": no_grad}
        rows += [{**row, **how} for row in rows_of(entered, times)]
    return rows


def cache_bytes(device: str) -> int:
    """Returns the size of the last cache before memory, or 32 MiB if Linux does not tell."""
    if device == "cuda":
        return int(torch.cuda.get_device_properties(0).L2_cache_size)
    sizes = Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")
    kib = [int(text[:-1]) for file in sizes if (text := file.read_text().strip()).endswith("K")]
    return max(kib, default=32 << 10) << 10


def free_bytes(device: str) -> int:
    if device == "cuda":
        torch.cuda.empty_cache()
        return int(torch.cuda.mem_get_info()[0])
    return free_memory()


def machine(extension: Extension, device: str) -> dict[str, Any]:
    gpu = torch.cuda.get_device_properties(0) if device == "cuda" else None
    return {
        "device": gpu.name
        if gpu
        else f"CPU {platform.machine()}, {torch.get_num_threads()} threads",
        "cache_bytes": cache_bytes(device),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "package": extension.name,
        "build": extension.build_info(),
    }


def profile(extension: Extension, device: str) -> str:
    """Runs torch's profiler over ten calls of each contestant with 2^20 float32 elements."""
    from torch.profiler import ProfilerActivity

    inputs = InputSets(1 << 20, torch.float32, device, sets=1)
    entered = contestants(extension, torch.float32)
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if device == "cuda" else [])]
    for contestant in entered:  # warms up, because first calls load kernels
        inputs.call(contestant, 3)
    with torch.profiler.profile(activities=activities, acc_events=True) as profiler:
        for contestant in entered:
            inputs.call(contestant, 10)
        if device == "cuda":
            torch.cuda.synchronize()
    order = "self_cuda_time_total" if device == "cuda" else "self_cpu_time_total"
    rows: str = profiler.key_averages().table(sort_by=order, row_limit=30, max_name_column_width=80)
    return rows


# --- The command ---------------------------------------------------------------------------


def _complete(options: argparse.Namespace, extension: Extension) -> None:
    """Fills in missing options and rejects impossible ones."""
    has_gpu = torch.cuda.is_available()
    if options.device == "cuda" and not has_gpu:
        raise BuildError(f"--device cuda: torch sees no GPU; `python -m {extension.name}` says why")
    if options.check and (options.sizes or options.dtypes):
        raise BuildError("--check chooses sizes and dtypes itself; leave out --sizes and --dtypes")
    if any(not 0 <= size <= 31 for size in options.sizes or []) or options.rounds < 2:
        raise BuildError("--sizes must be from 0 to 31, --rounds at least 2")
    options.device = options.device or ("cuda" if has_gpu else "cpu")
    on_gpu = options.device == "cuda"
    if options.check:
        options.sizes, options.dtypes = ([28], ["all"]) if on_gpu else ([24], ["float32"])
    options.sizes = options.sizes or list(range(10, 29 if on_gpu else 25, 2))
    known = extension.dtypes
    options.dtypes = options.dtypes or [d for d in ("float32", "float16", "int64") if d in known]
    if "all" in options.dtypes:
        options.dtypes = known
    if unknown := set(options.dtypes) - set(known):
        raise BuildError(
            f"no op has kernels for {', '.join(sorted(unknown))}; use {', '.join(known)}, or all"
        )


def run(options: argparse.Namespace) -> int:
    extension = find_extension(options.package)
    _complete(options, extension)
    if options.profile:
        print(profile(extension, options.device))
        return 0
    if options.device == "cpu":
        why = "as --device says" if torch.cuda.is_available() else "because torch sees no GPU"
        print(f"Measuring the CPU ops, {why}.")
    result = report.Result(
        machine=machine(extension, options.device), device=options.device, rounds=options.rounds
    )
    cells = list(itertools.product(options.dtypes, options.sizes))
    progress = report.Progress(len(cells) + 1)
    progress.step("the cost of a call")
    result.overhead = measure_overhead(extension, options.device, 10 * options.rounds)
    for dtype, exponent in cells:
        progress.step(f"{dtype}, 2^{exponent} elements")
        rows = measure_bandwidth(extension, options.device, dtype, exponent, options.rounds)
        result.bandwidth += rows
        if not rows:
            result.skipped.append(f"{dtype}, 2^{exponent} elements: not enough free memory")
    progress.close()
    if options.check:
        timed = next((op.name for op in extension.ops if op.timed), extension.ops[0].name)
        result.checks = report.judge(result, timed)
    print(report.text(result))
    for line in report.write(result, options.output):
        print(line)
    return 0 if all(check["passed"] for check in result.checks) else 1

"""Times the three ops beside torch.add: bandwidth over sizes and dtypes, and a small call's cost.

    python scripts/benchmark.py                    on the GPU, or on the CPU where there is none
    python scripts/benchmark.py --dtypes all --sizes 20 24 28
    python scripts/benchmark.py --check            does this build keep to its promised ratios?
    python scripts/benchmark.py --profile          torch's profiler: ATen rows and kernels

Writes benchmark.json (see benchmark_report.py for its fields) and benchmark.png.
Exit status: 0 all right, 1 a promised ratio was missed, 2 wrong usage or no usable package.

How the times are taken. On the GPU a sleeping kernel holds the stream while the host enqueues a
batch of calls between two CUDA events, so the events see the GPU's work and nothing of the host's.
Batches of all ops alternate in rounds, so that a drifting clock moves all of them. Inputs and
outputs rotate among up to twenty sets, to defeat the cache; sizes where that does not suffice are
marked. The cost of a call is the host's time over many calls of 1,024 elements, ended by waiting
for the GPU.
"""

import argparse
import gc
import itertools
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import benchmark_report as report

try:
    import torch
    from torch import Tensor

    import cuda_ext_example
except ImportError as error:
    print(f"error: {error}\nRun `pip install .` first, or set PYTHONPATH to a built checkout.")
    raise SystemExit(2) from None

DTYPES = (
    *("float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8"),
    *("complex64", "complex128"),
)
SMALL = 1024  # elements of a call whose cost is the call itself


@dataclass(frozen=True)
class Contestant:
    name: str
    layer: str  #: torch, op (torch.ops) or wrapper (the Python function)
    adds: str  #: what it adds to a tensor: tensor or number
    function: Callable[..., Tensor]


def contestants(dtype: torch.dtype) -> list[Contestant]:
    ops = torch.ops.cuda_ext_example
    has_fractions = dtype.is_floating_point or dtype.is_complex
    return [
        Contestant("torch.add", "torch", "tensor", torch.add),
        Contestant("my_add", "op", "tensor", ops.my_add.default),
        Contestant("my_add", "wrapper", "tensor", cuda_ext_example.my_add),
        Contestant("my_fast_add", "op", "tensor", ops.my_fast_add.default),
        Contestant("my_fast_add", "wrapper", "tensor", cuda_ext_example.my_fast_add),
        Contestant("torch.add", "torch", "number", torch.add),
        Contestant(
            "cust_add", "op", "number", ops.cust_add.float if has_fractions else ops.cust_add.int
        ),
        Contestant("cust_add", "wrapper", "number", cuda_ext_example.cust_add),
    ]


class InputSets:
    """Random inputs in several copies, and places for as many outputs, used in turn."""

    def __init__(self, elements: int, dtype: torch.dtype, device: str, sets: int) -> None:
        def random() -> Tensor:
            if dtype.is_floating_point or dtype.is_complex:
                return torch.randn(elements, dtype=dtype, device=device)
            return torch.randint(0, 50, (elements,), dtype=dtype, device=device)

        self.outputs: list[Tensor | None] = [None] * sets
        pairs = [(random(), random()) for _ in range(sets)]
        number = 1.5 if dtype.is_floating_point or dtype.is_complex else 3
        arguments = {"tensor": pairs, "number": [(a, number) for a, _ in pairs]}
        self._turns = {key: itertools.cycle(enumerate(sets_)) for key, sets_ in arguments.items()}

    def call(self, contestant: Contestant, times: int) -> None:
        function, outputs = contestant.function, self.outputs
        for place, arguments in itertools.islice(self._turns[contestant.adds], times):
            outputs[place] = function(*arguments)


# --- Two clocks: seconds per call of a batch ----------------------------------------------------

Batch = Callable[[int], None]  # makes so many calls
Clock = Callable[[Batch, int], float]  # measures so many calls of a batch


def host_clock(device: str) -> Clock:
    """The host's time per call, with the GPU's work finished at both ends."""
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None

    def measure(batch: Batch, calls: int) -> float:
        wait()
        start = time.perf_counter()
        batch(calls)
        wait()
        return (time.perf_counter() - start) / calls

    return measure


def gpu_clock() -> Clock:
    """The GPU's time per call, without the host's: see this file's head."""
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    cycles = 500_000

    def measure(batch: Batch, calls: int) -> float:
        nonlocal cycles
        while True:
            torch.cuda.synchronize()
            torch.cuda._sleep(cycles)
            start.record()
            batch(calls)
            stop.record()
            host_was_ahead = not start.query()
            stop.synchronize()
            if host_was_ahead or cycles > 1 << 30:
                return float(start.elapsed_time(stop)) / 1e3 / calls
            cycles *= 2  # the GPU woke up before the host was ready: sleep longer

    return measure


def rounds_of(clock: Clock, batches: Sequence[Batch], calls: int, rounds: int) -> list[list[float]]:
    """Each batch's times. Rounds begin with different batches; the first round warms up."""
    times: list[list[float]] = [[] for _ in batches]
    gc.collect()
    gc.disable()
    try:
        for turn in range(rounds + 1):
            for i in range(len(batches)):
                which = (turn + i) % len(batches)
                seconds = clock(batches[which], calls)
                if turn > 0:
                    times[which].append(seconds)
    finally:
        gc.enable()
    return times


def rows_of(entered: list[Contestant], times: list[list[float]]) -> Iterator[dict[str, Any]]:
    """What is reported of each contestant, with its ratio to torch.add in the same rounds."""
    reference = {c.adds: t for c, t in zip(entered, times, strict=True) if c.layer == "torch"}
    for contestant, own in zip(entered, times, strict=True):
        q1, median, q3 = (
            second * 1e6 for second in statistics.quantiles(own, n=4, method="inclusive")
        )
        ratios = [mine / its for mine, its in zip(own, reference[contestant.adds], strict=True)]
        yield {
            **{"name": contestant.name, "layer": contestant.layer, "adds": contestant.adds},
            **{"us": median, "us_q1": q1, "us_q3": q3, "time_ratio": statistics.median(ratios)},
        }


# --- What is measured ---------------------------------------------------------------------------


def measure_bandwidth(device: str, name: str, exponent: int, rounds: int) -> list[dict[str, Any]]:
    """Each op at one size, or nothing where memory does not suffice."""
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
    entered = [c for c in contestants(dtype) if c.layer != "wrapper"]
    batches = [lambda n, c=c: inputs.call(c, n) for c in entered]
    clock = gpu_clock() if device == "cuda" else host_clock(device)
    rows = []
    for row in rows_of(entered, rounds_of(clock, batches, calls, rounds)):
        moved = operand * (3 if row["adds"] == "tensor" else 2)
        in_cache = sets * 3 * operand < 2 * cache
        where = {"dtype": name, "elements": elements, "in_cache": in_cache}
        rows.append({**where, **row, "gb_per_s": moved / row["us"] / 1e3})
    return rows


def measure_overhead(device: str, rounds: int) -> list[dict[str, Any]]:
    """A call's cost at 1,024 float32 elements: torch.add, each op and each wrapper."""
    a, b = (torch.randn(SMALL, device=device) for _ in range(2))

    def batch(contestant: Contestant) -> Batch:
        function, second = contestant.function, b if contestant.adds == "tensor" else 1.5

        def call(times: int) -> None:
            for _ in itertools.repeat(None, times):
                function(a, second)

        return call

    entered = contestants(torch.float32)
    times = rounds_of(host_clock(device), [batch(c) for c in entered], 1000, rounds)
    return list(rows_of(entered, times))


def cache_bytes(device: str) -> int:
    """The last cache before memory, as the driver or Linux tells; 32 MiB where Linux does not."""
    if device == "cuda":
        return int(torch.cuda.get_device_properties(0).L2_cache_size)
    sizes = Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")
    kib = [int(text[:-1]) for file in sizes if (text := file.read_text().strip()).endswith("K")]
    return max(kib, default=32 << 10) << 10


def free_bytes(device: str) -> int:
    if device == "cuda":
        torch.cuda.empty_cache()
        return int(torch.cuda.mem_get_info()[0])
    available = next(
        s for s in Path("/proc/meminfo").read_text().splitlines() if "MemAvailable" in s
    )
    return int(available.split()[1]) << 10


def machine(device: str) -> dict[str, Any]:
    gpu = torch.cuda.get_device_properties(0) if device == "cuda" else None
    return {
        "device": gpu.name
        if gpu
        else f"CPU {platform.machine()}, {torch.get_num_threads()} threads",
        "cache_bytes": cache_bytes(device),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "build": cuda_ext_example.build_info(),
    }


def profile(device: str) -> str:
    """torch's profiler over ten calls of each op and wrapper at 2^20 float32 elements."""
    from torch.profiler import ProfilerActivity

    inputs = InputSets(1 << 20, torch.float32, device, sets=1)
    entered = contestants(torch.float32)
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if device == "cuda" else [])]
    for contestant in entered:  # warm up: the first calls load kernels
        inputs.call(contestant, 3)
    with torch.profiler.profile(activities=activities, acc_events=True) as profiler:
        for contestant in entered:
            inputs.call(contestant, 10)
        if device == "cuda":
            torch.cuda.synchronize()
    order = "self_cuda_time_total" if device == "cuda" else "self_cpu_time_total"
    rows: str = profiler.key_averages().table(sort_by=order, row_limit=30, max_name_column_width=80)
    return rows


# --- The command line ---------------------------------------------------------------------------


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add = parser.add_argument
    add("--device", choices=["cuda", "cpu"], help="default: cuda where torch can use a GPU, or cpu")
    add(
        "--dtypes",
        nargs="+",
        metavar="DTYPE",
        choices=[*DTYPES, "all"],
        help="default: float32 float16 int64",
    )
    add(
        "--sizes",
        nargs="+",
        type=int,
        metavar="N",
        help="2^N elements, N from 0 to 31; default: 10 12 ... 28 (CPU: 24)",
    )
    add("--rounds", type=int, default=15, help="how often each op is measured (default: 15)")
    add(
        "--output",
        type=Path,
        default=Path("build/benchmark"),
        metavar="FOLDER",
        help="default: build/benchmark",
    )
    add(
        "--check",
        action="store_true",
        help="measure and judge the promised ratios; chooses sizes and dtypes",
    )
    add("--profile", action="store_true", help="print torch's profiler rows instead of measuring")
    options = parser.parse_args()
    has_gpu = torch.cuda.is_available()
    if options.device == "cuda" and not has_gpu:
        parser.error("--device cuda: torch sees no GPU; `python -m cuda_ext_example` says why")
    if options.check and (options.sizes or options.dtypes):
        parser.error("--check chooses sizes and dtypes itself; leave out --sizes and --dtypes")
    if any(not 0 <= size <= 31 for size in options.sizes or []) or options.rounds < 2:
        parser.error("--sizes must be from 0 to 31, --rounds at least 2")
    options.device = options.device or ("cuda" if has_gpu else "cpu")
    on_gpu = options.device == "cuda"
    if options.check:
        options.sizes, options.dtypes = ([28], ["all"]) if on_gpu else ([24], ["float32"])
    options.sizes = options.sizes or list(range(10, 29 if on_gpu else 25, 2))
    options.dtypes = options.dtypes or ["float32", "float16", "int64"]
    if "all" in options.dtypes:
        options.dtypes = list(DTYPES)
    return options


def main() -> int:
    options = parse()
    if options.profile:
        print(profile(options.device))
        return 0
    if options.device == "cpu":
        why = "as --device says" if torch.cuda.is_available() else "because torch sees no GPU"
        print(f"Measuring the CPU ops, {why}.")
    result = report.Result(
        machine=machine(options.device), device=options.device, rounds=options.rounds
    )
    cells = list(itertools.product(options.dtypes, options.sizes))
    progress = report.Progress(len(cells) + 1)
    progress.step("the cost of a call")
    result.overhead = measure_overhead(options.device, 10 * options.rounds)
    for dtype, exponent in cells:
        progress.step(f"{dtype}, 2^{exponent} elements")
        rows = measure_bandwidth(options.device, dtype, exponent, options.rounds)
        result.bandwidth += rows
        if not rows:
            result.skipped.append(f"{dtype}, 2^{exponent} elements: not enough free memory")
    progress.close()
    if options.check:
        result.checks = report.judge(result)
    print(report.text(result))
    for line in report.write(result, options.output):
        print(line)
    return 0 if all(check["passed"] for check in result.checks) else 1


if __name__ == "__main__":
    sys.exit(main())

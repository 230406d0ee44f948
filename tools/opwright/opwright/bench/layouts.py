"""`opwright bench --layouts`: compares an op with torch's own for shifted, broadcast and strided operands.

It needs a GPU. For each layout and dtype it measures the GPU's time of the list's timed op and of torch's own, in
alternating rounds with the host kept ahead (clock.py), and the bandwidth of the bytes that a call must move; a
broadcast operand counts once. `copy_` and `fill_` show what the memory can do. Ops of one tensor are timed dense.
It writes layouts.json and layouts.png; --check judges the promised ratios.
"""

import argparse
import functools
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from opwright.bench import report
from opwright.bench.clock import gpu_clock, repeat, rounds_of
from opwright.bench.measure import Extension, find_extension
from opwright.build.project import BuildError

DTYPES = ("float32", "float16", "int8")
DEVICE = "cuda"
EXPONENT = 27  # there are 2^EXPONENT elements
TITLE = "bandwidth of the bytes that each layout must move"

Make = Callable[..., Tensor]
# Functions that make two operands with `t(*shape)`; their result has m * n elements.
LAYOUTS: dict[str, Callable[[Make, int, int], tuple[Tensor, ...]]] = {
    "dense": lambda t, m, n: (t(m, n), t(m, n)),
    "both transposed": lambda t, m, n: (t(n, m).t(), t(n, m).t()),
    "channels_last": lambda t, m, n: tuple(
        t(m // 64, 64, 64, n // 64).to(memory_format=torch.channels_last) for _ in range(2)
    ),
    "misaligned": lambda t, m, n: (t(m * n + 1)[1:], t(m * n + 1)[1:]),
    "row broadcast": lambda t, m, n: (t(m, n), t(n)),
    "column broadcast": lambda t, m, n: (t(m, n), t(m, 1)),
    "scalar tensor": lambda t, m, n: (t(m, n), t()),
    "outer": lambda t, m, n: (t(m, 1), t(n)),
    "every second column": lambda t, m, n: (t(m, 2 * n)[:, ::2], t(m, 2 * n)[:, ::2]),
    "rows of 2,047 out of 8,192": lambda t, m, n: (
        t(m * n // 2048, 8192)[:, :2047],
        t(m * n // 2048, 8192)[:, :2047],
    ),
    "one transposed": lambda t, m, n: (t(m, n), t(n, m).t()),
}
# The promised fractions of torch's speed for every layout, and of the memory's for layouts with dense bytes.
OF_TORCH = 0.98
OF_MEMORY = {
    "row broadcast": ("copy_", 0.9),
    "column broadcast": ("copy_", 0.9),
    "scalar tensor": ("copy_", 0.9),
    "outer": ("fill_", 0.9),
    "misaligned": ("dense", 0.95),
}


def bytes_moved(operands: tuple[Any, ...], out: Tensor) -> int:
    """Counts each element of an operand once, and the output."""
    tensors = [operand for operand in operands if isinstance(operand, Tensor)]
    return sum(tensor.numel() * tensor.element_size() for tensor in [*tensors, out])


def new(dtype: torch.dtype, *shape: int) -> Tensor:
    if dtype.is_floating_point:
        return torch.randn(shape, dtype=dtype, device=DEVICE)
    return torch.randint(0, 50, shape, dtype=dtype, device=DEVICE)


def cases(extension: Extension) -> list[tuple[str, Any, str]]:
    """Returns the cases to time: a name, an op and a layout."""
    ops = [op for op in extension.ops if op.elementwise]
    pairs = [op for op in ops if op.takes_two_tensors]
    if not pairs:
        raise BuildError(f"{extension.name} has no elementwise op of two tensors to lay out")
    timed = next((op for op in pairs if op.timed), pairs[0])
    singles = [op for op in ops if not op.takes_two_tensors]
    return [
        *((layout, timed, layout) for layout in LAYOUTS),
        *((f"{op.name}, dense", op, "dense") for op in singles),
    ]


def measure(extension: Extension, dtype_name: str, rounds: int) -> Iterator[dict[str, Any]]:
    dtype = getattr(torch, dtype_name)
    m = 1 << EXPONENT // 2
    n = m << EXPONENT % 2
    clock = gpu_clock()
    for name, op, layout in cases(extension):
        if dtype_name not in op.dtypes:
            continue
        operands = LAYOUTS[layout](functools.partial(new, dtype), m, n)
        arguments = op.arguments_for(*operands)
        out = op.function(*arguments)
        moved = bytes_moved(arguments, out)
        source = torch.empty(moved // 2 // dtype.itemsize, dtype=dtype, device=DEVICE)
        target = torch.empty_like(source)
        torchs_arguments = op.arguments_for(*operands, reference=True)
        contestants: dict[str, Callable[[], object]] = {
            "ours": functools.partial(op.function, *arguments),
            "torch": functools.partial(op.torchs_own(), *torchs_arguments),
            "copy_": functools.partial(target.copy_, source),
            "fill_": functools.partial(out.fill_, 1),
        }
        times = rounds_of(clock, [repeat(call) for call in contestants.values()], 5, rounds)
        us = {key: statistics.median(t) * 1e6 for key, t in zip(contestants, times, strict=True)}
        ratios = [torchs / own for own, torchs in zip(times[0], times[1], strict=True)]
        filled = out.numel() * out.element_size()
        yield {
            **{"dtype": dtype_name, "layout": name, "bytes": moved, "us": us},
            "of_torch": statistics.median(ratios),
            "tb_per_s": moved / us["ours"] / 1e6,
            "copy_tb_per_s": 2 * source.numel() * dtype.itemsize / us["copy_"] / 1e6,
            "fill_tb_per_s": filled / us["fill_"] / 1e6,
        }
        del operands, arguments, torchs_arguments, out, source, target, contestants
        torch.cuda.empty_cache()


def judge(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Judges every promise: what, value, limit, passed."""
    checks = []
    dense = {row["dtype"]: row["tb_per_s"] for row in rows if row["layout"] == "dense"}
    for row in rows:
        where = f"{row['layout']}, {row['dtype']}"
        checks.append((f"{where}: speed / torch's own", row["of_torch"], OF_TORCH))
        if row["layout"] in OF_MEMORY:
            beside, limit = OF_MEMORY[row["layout"]]
            speeds = {"copy_": row["copy_tb_per_s"], "fill_": row["fill_tb_per_s"]}
            speed = speeds.get(beside, dense[row["dtype"]])
            checks.append((f"{where}: bandwidth / {beside}'s", row["tb_per_s"] / speed, limit))
    return [
        {"what": what, "value": value, "limit": f">= {limit:g}", "passed": value >= limit}
        for what, value, limit in checks
    ]


def text(rows: list[dict[str, Any]]) -> str:
    dtypes = list(dict.fromkeys(row["dtype"] for row in rows))
    lines = [f"{'layout':<28}" + "".join(f"{dtype:>24}" for dtype in dtypes)]
    lines.append(f"{'':<28}" + f"{'TB/s  x torch  x copy_':>24}" * len(dtypes))
    for layout in dict.fromkeys(row["layout"] for row in rows):
        cells = (
            f"{row['tb_per_s']:.2f}   {row['of_torch']:.2f}     "
            f"{row['tb_per_s'] / row['copy_tb_per_s']:.2f}"
            for row in rows
            if row["layout"] == layout
        )
        lines.append(f"{layout:<28}" + "".join(f"{cell:>24}" for cell in cells))
    return "\n".join(lines)


def plot(rows: list[dict[str, Any]], device: str, path: Path) -> None:
    import matplotlib.pyplot as plt

    dtypes = list(dict.fromkeys(row["dtype"] for row in rows))
    figure, panels = plt.subplots(
        1,
        len(dtypes),
        figsize=(6 * len(dtypes), 5),
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    for panel, dtype in zip(panels.flat, dtypes, strict=True):
        here = [row for row in rows if row["dtype"] == dtype]
        places = range(len(here))
        torchs = [row["bytes"] / row["us"]["torch"] / 1e6 for row in here]
        panel.barh([p - 0.2 for p in places], torchs, 0.4, color="0.6", label="torch's own")
        ours = [row["tb_per_s"] for row in here]
        panel.barh([p + 0.2 for p in places], ours, 0.4, color="C0", label="ours")
        copies = [row["copy_tb_per_s"] for row in here]
        panel.plot(copies, list(places), "k|", markersize=14, label="copy_ of as many bytes")
        panel.set(title=dtype, xlabel="TB/s", yticks=list(places))
        panel.set_yticklabels([row["layout"] for row in here])
    panels.flat[0].invert_yaxis()
    figure.legend(*panels.flat[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    figure.suptitle(f"{device}, {TITLE}")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def run(options: argparse.Namespace) -> int:
    extension = find_extension(options.package)
    if not torch.cuda.is_available():
        raise BuildError(f"torch sees no GPU; `python -m {extension.name}` says why")
    known = [dtype for dtype in DTYPES if dtype in extension.dtypes]
    rows = []
    progress = report.Progress(len(known))
    for dtype in known:
        progress.step(dtype)
        rows += list(measure(extension, dtype, options.rounds))
    progress.close()
    checks = judge(rows) if options.check else []
    device = torch.cuda.get_device_name()
    result = {"schema_version": 1, "device": device, "torch": torch.__version__}
    result |= {"exponent": EXPONENT, "rows": rows, "checks": checks}
    print(text(rows))
    for line in report.verdicts(checks):
        print(line)
    for line in report.write_files(
        result, options.output / "layouts", functools.partial(plot, rows, device)
    ):
        print(line)
    return 0 if all(check["passed"] for check in checks) else 1

"""Times rms_norm and add_rms_norm with a weight beside torch eager, torch.compile, Liger and QuACK.

    python examples/benchmark_rms_norm.py [--check] [--peers FOLDER] [--output FOLDER]

Then more rows beside torch eager alone: odd ones, views, other dtypes.

Needs a GPU. --peers names a folder of unpacked wheels (liger-kernel, quack-kernels and what they
need); peers that cannot be imported are left out, and the report says why. Times are the GPU's, in
alternating rounds with the host kept ahead (opwright's bench/clock.py). Bandwidth counts two passes over x
forward and three backward; of add_rms_norm, four each. Also the host's time of a call on 1 x 4,096, and
the first call of a fresh process once the GPU's context exists. Writes rms_norm.json; --check judges the
promised ratios.
"""

import argparse
import functools
import json
import site
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from opwright.bench import report
from opwright.bench.clock import gpu_clock, host_clock, repeat, rounds_of
from torch import Tensor
from torch.nn import functional

import cuda_ext_example

SHAPES = (  # of 64 Mi elements, or about as many: the rows of language models, then longer and odd ones
    *((16384, 4096), (8192, 8192), (65536, 1024), (4096, 16384), (262144, 128), (13107, 5120)),
    *((3640, 18432), (1638, 40960), (512, 131072), (16388, 4095), (16368, 4100)),
)
DTYPES = ("bfloat16", "float32")
EPS = 1e-5
Norms = tuple[Callable[..., Any], Callable[..., Any]]  # rms_norm and add_rms_norm


def eager(x: Tensor, weight: Tensor) -> Tensor:
    return functional.rms_norm(x, x.shape[-1:], weight, EPS)


def add_eager(x: Tensor, residual: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    added = x + residual
    return eager(added, weight), added


def load_ours() -> Norms:
    return (
        lambda x, weight: cuda_ext_example.rms_norm(x, weight, EPS),
        lambda x, residual, weight: cuda_ext_example.add_rms_norm(x, residual, weight, EPS),
    )


def load_compiled() -> Norms:
    return torch.compile(eager, dynamic=False), torch.compile(add_eager, dynamic=False)


def load_liger() -> Norms:
    from liger_kernel.ops.fused_add_rms_norm import LigerFusedAddRMSNormFunction
    from liger_kernel.ops.rms_norm import LigerRMSNormFunction

    how = (EPS, 0.0, "llama", False)
    return (
        lambda x, weight: LigerRMSNormFunction.apply(x, weight, *how),
        lambda x, residual, weight: LigerFusedAddRMSNormFunction.apply(x, residual, weight, *how),
    )


def load_quack() -> Norms:
    from quack import rmsnorm

    return (
        lambda x, weight: rmsnorm(x, weight, eps=EPS),
        lambda x, residual, weight: rmsnorm(x, weight, residual=residual, eps=EPS, prenorm=True),
    )


LOADERS: dict[str, Callable[[], Norms]] = {
    "ours": load_ours,
    "torch eager": lambda: (eager, add_eager),
    "torch.compile": load_compiled,
    "Liger": load_liger,
    "QuACK": load_quack,
}


def load() -> tuple[dict[str, Norms], dict[str, str]]:
    """Whoever is here, and why the others are not."""
    here, missing = {}, {}
    for name, loader in LOADERS.items():
        try:
            here[name] = loader()
        except Exception as error:  # an import of theirs may fail in any way
            missing[name] = f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return here, missing


# --- What is measured ---------------------------------------------------------------------------


def tensors(shape: tuple[int, int], dtype: str, gradient: bool, adds: bool = False) -> list[Tensor]:
    """Returns x, the residual if one is added, and the weight."""
    make = functools.partial(torch.randn, dtype=getattr(torch, dtype), device="cuda")
    shapes = (shape, shape, shape[-1]) if adds else (shape, shape[-1])
    return [make(own).requires_grad_(gradient) for own in shapes]


def forward_call(norm: Any, inputs: list[Tensor], _: list[Tensor]) -> Callable[[], object]:
    return functools.partial(norm, *(tensor.detach() for tensor in inputs))


def backward_call(norm: Any, inputs: list[Tensor], grads: list[Tensor]) -> Callable[[], object]:
    out = norm(*inputs)
    outputs = out if isinstance(out, tuple) else (out,)
    return lambda: torch.autograd.grad(outputs, inputs, grads, retain_graph=True)


PASSES = {
    "forward": (2, forward_call),
    "backward": (3, backward_call),
    "add, forward": (4, forward_call),
    "add, backward": (4, backward_call),
}


def measure(
    norms: dict[str, Norms], direction: str, dtype: str, shape: tuple[int, int], rounds: int
) -> dict[str, Any]:
    prepare = PASSES[direction][1]
    adds = direction.startswith("add")
    calls, failed = {}, {}
    # All calls share the tensors, because their place in memory matters.
    inputs = tensors(shape, dtype, gradient=True, adds=adds)
    grads = [torch.randn_like(inputs[0]) for _ in range(1 + adds)]
    for name, norm in norms.items():
        try:
            calls[name] = prepare(norm[adds], inputs, grads)
            calls[name]()  # compiles, where that is needed
        except Exception as error:  # a peer may not have this shape
            failed[name] = (str(error).splitlines() or [type(error).__name__])[0]
            calls.pop(name, None)
    times = rounds_of(gpu_clock(), [repeat(call) for call in calls.values()], 5, rounds)
    us = {name: statistics.median(own) * 1e6 for name, own in zip(calls, times, strict=True)}
    where = {"direction": direction, "dtype": dtype, "shape": list(shape)}
    return {**where, "us": us, **({"failed": failed} if failed else {})}


def bandwidths(row: dict[str, Any]) -> dict[str, float]:
    """Returns everyone's TB/s."""
    elements = row["shape"][0] * row["shape"][1]
    moved = PASSES[row["direction"]][0] * elements * getattr(torch, row["dtype"]).itemsize
    return {name: moved / us / 1e6 for name, us in row["us"].items()}


def other_rows() -> Iterator[tuple[str, Tensor, Tensor]]:
    """Rows that peers take few of, about 64 Mi elements each, with a weight."""
    make = functools.partial(torch.randn, device="cuda")
    bfloat16 = functools.partial(make, dtype=torch.bfloat16)
    sizes = {
        torch.bfloat16: (
            *(128, 257, 516, 1001, 1004, 1024, 2052, 3004, 4095, 4096, 4097, 4100, 5120, 5124),
            *(8190, 8192, 8196, 12292, 16384, 16388, 18432, 40001, 40004, 40960, 131072),
        ),
        torch.float16: (4096,),
        torch.float32: (257, 1001, 1024, 4095, 4096, 5120, 16384, 40001, 40960, 131072),
        torch.float64: (4096, 18432),
    }
    for dtype, own in sizes.items():
        for size in own:
            x = make((1 << 26) // size, size, dtype=dtype)
            yield f"{str(dtype)[6:]}, {size}", x, make(size, dtype=dtype)
    for size in (4096, 5120, 18432):
        yield (
            f"bfloat16, float32 weight, {size}",
            bfloat16((1 << 26) // size, size),
            make(size),
        )
    moved = bfloat16((1 << 26) + 1)[1:].view(8192, 8192)
    yield "bfloat16, 8192, moved by one element", moved, bfloat16(8192)
    k = bfloat16(1 << 16, 48, 128)[:, 32:40]
    yield "bfloat16, a view of k, by token", k, bfloat16(128)
    yield "bfloat16, a view of k, heads first", k.detach().transpose(0, 1), bfloat16(128)


def beside_eager(rounds: int) -> list[dict[str, Any]]:
    norms = {"ours": load_ours()[0], "torch eager": eager}
    rows = []
    for what, x, weight in other_rows():
        inputs, grads = [x.requires_grad_(), weight.requires_grad_()], [torch.randn_like(x)]
        for direction in ("forward", "backward"):
            passes, prepare = PASSES[direction]
            calls = [repeat(prepare(norm, inputs, grads)) for norm in norms.values()]
            times = rounds_of(gpu_clock(), calls, 5, rounds)
            speeds = [passes * x.nbytes / statistics.median(own) / 1e12 for own in times]
            rows.append(
                {"rows": what, "direction": direction, **dict(zip(norms, speeds, strict=True))}
            )
        torch.cuda.empty_cache()
    return rows


def host_times(norms: dict[str, Norms], rounds: int) -> list[dict[str, Any]]:
    """The host's time of a call on 1 x 4,096."""
    rows = []
    for gradient in (False, True):
        x, weight = tensors((1, 4096), "bfloat16", gradient)
        batches = [repeat(functools.partial(norm, x, weight)) for norm, _ in norms.values()]
        for name, own in zip(
            norms, rounds_of(host_clock("cuda"), batches, 300, rounds), strict=True
        ):
            us = statistics.median(own) * 1e6
            rows.append({"name": name, "gradient": gradient, "us": us})
    return rows


def first_call(name: str, peers: Path | None) -> dict[str, Any]:
    """The first call of a fresh process, forward and backward, once the context exists."""
    command = [sys.executable, __file__, "--first-call", name]
    command += ["--peers", str(peers)] if peers else []
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        return {"name": name, "error": (done.stderr.strip().splitlines() or ["?"])[-1]}
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def measure_first_call(name: str) -> dict[str, Any]:
    x, weight = tensors((8192, 4096), "bfloat16", gradient=True)
    grad = torch.randn_like(x)
    norm = LOADERS[name]()[0]
    torch.cuda.synchronize()
    milliseconds = []
    for action in (lambda: norm(x, weight), lambda: norm(x, weight).backward(grad)):
        start = time.perf_counter()
        action()
        torch.cuda.synchronize()
        milliseconds.append((time.perf_counter() - start) * 1e3)
    return {"name": name, "forward_ms": milliseconds[0], "backward_ms": milliseconds[1]}


# --- What is said of it -------------------------------------------------------------------------


def rows_of_kind(result: dict[str, Any], direction: str, dtype: str) -> list[dict[str, Any]]:
    return [r for r in result["rows"] if (r["direction"], r["dtype"]) == (direction, dtype)]


def judge(result: dict[str, Any]) -> list[dict[str, Any]]:
    checks = []

    def check(what: str, value: float, relation: str, limit: float) -> None:
        passed = value >= limit if relation == ">=" else value <= limit
        sentence = f"{relation} {limit:g}"
        checks.append({"what": what, "value": value, "limit": sentence, "passed": passed})

    for direction in PASSES:
        for dtype in DTYPES:
            ratios = []
            for row in rows_of_kind(result, direction, dtype):
                cell = bandwidths(row)
                best = max(speed for name, speed in cell.items() if name != "ours")
                ratios.append(cell["ours"] / best)
                what = f"{direction}, {dtype}, {row['shape'][0]} x {row['shape'][1]}: ours / the best peer"
                check(what, ratios[-1], ">=", 0.97)
            ahead = sum(ratio > 1 for ratio in ratios)
            check(f"{direction}, {dtype}: shapes on which ours is ahead", ahead, ">=", 2)
    for row in result["beside_eager"]:
        ratio = row["ours"] / row["torch eager"]
        check(f"{row['direction']}, {row['rows']}: ours / torch eager", ratio, ">=", 1)
    host = {(row["name"], row["gradient"]): row["us"] for row in result["host"]}
    ratio = host["ours", False] / host["torch eager", False]
    check("a call on 1 x 4,096, host time / torch eager's", ratio, "<=", 1.1)
    for row in result["first_calls"]:
        if row["name"] == "ours":
            check("first call in a fresh process, ms", row.get("forward_ms", 1e9), "<=", 10)
    return checks


def text(result: dict[str, Any]) -> str:
    lines = [
        f"{result['device']}, torch {result['torch']}: rms_norm and add_rms_norm with a weight, TB/s"
    ]
    names = [name for name in LOADERS if name not in result["missing"]]
    for direction in PASSES:
        for dtype in DTYPES:
            lines += ["", f"{direction}, {dtype:<20}" + "".join(f"{name:>15}" for name in names)]
            for row in rows_of_kind(result, direction, dtype):
                cells = {name: f"{speed:.2f}" for name, speed in bandwidths(row).items()}
                label = f"{row['shape'][0]} x {row['shape'][1]}"
                lines.append(f"  {label:<28}" + "".join(f"{cells.get(n, '-'):>15}" for n in names))
    lines += ["", "Beside torch eager, TB/s: ours (torch), forward and backward"]
    beside: dict[str, list[str]] = {}
    for row in result["beside_eager"]:
        beside.setdefault(row["rows"], []).append(f"{row['ours']:.2f} ({row['torch eager']:.2f})")
    lines += [f"  {what:<40}{'   '.join(both)}" for what, both in beside.items()]
    lines += ["", "Host time of a call on 1 x 4,096, microseconds; with a gradient"]
    host = {(row["name"], row["gradient"]): row["us"] for row in result["host"]}
    lines += [f"  {n:<20}{host[n, False]:10.1f}{host[n, True]:10.1f}" for n in names]
    lines += ["", "First call of a fresh process, milliseconds; forward, then forward and backward"]
    for row in result["first_calls"]:
        figures = row.get("error") or f"{row['forward_ms']:10.1f}{row['backward_ms']:10.1f}"
        lines.append(f"  {row['name']:<20}{figures}")
    lines += [f"left out: {name}: {why}" for name, why in result["missing"].items()]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="judge the promised ratios")
    parser.add_argument("--peers", type=Path, help="a folder of unpacked wheels to import from")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--output", type=Path, default=Path("build/benchmark"))
    parser.add_argument("--first-call", choices=LOADERS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not torch.cuda.is_available():
        parser.error("torch sees no GPU; `python -m cuda_ext_example` says why")
    if options.peers:
        site.addsitedir(str(options.peers.resolve()))
    if options.first_call:
        print(json.dumps(measure_first_call(options.first_call)))
        return 0
    norms, missing = load()
    torch._dynamo.config.recompile_limit = 64  # every shape is compiled for itself
    rows = []
    progress = report.Progress(len(PASSES) * len(DTYPES) * len(SHAPES))
    for direction in PASSES:
        for dtype in DTYPES:
            for shape in SHAPES:
                progress.step(f"{direction}, {dtype}, {shape[0]} x {shape[1]}")
                rows.append(measure(norms, direction, dtype, shape, options.rounds))
                torch.cuda.empty_cache()
    progress.close()
    result: dict[str, Any] = {
        **{"schema_version": 2, "device": torch.cuda.get_device_name()},
        **{"torch": torch.__version__, "missing": missing, "rows": rows},
        "beside_eager": beside_eager(options.rounds),
        "host": host_times(norms, options.rounds),
        "first_calls": [first_call(name, options.peers) for name in norms],
    }
    checks = judge(result) if options.check else []
    print(text(result))
    for line in report.verdicts(checks):
        print(line)
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "rms_norm.json").write_text(report.in_lines(result))
    return 0 if all(check["passed"] for check in checks) else 1


if __name__ == "__main__":
    sys.exit(main())

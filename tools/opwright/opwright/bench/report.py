"""Reports the results of `opwright bench` as text, JSON and a plot, and judges the promised ratios.

benchmark.json, schema_version 2:
  machine    device, cache_bytes, torch, python, package, build (its build_info())
  device     cuda or cpu
  rounds     how often each batch of calls was measured
  bandwidth  one row per dtype, elements and op: name, beside (torch's own expression), us, us_q1,
             us_q3 (median and quartiles of a call in microseconds), time_ratio (to torch's own in
             the same round, median; below 1 is faster), gb_per_s (inputs and output together),
             in_cache (true: the data may have come from the cache)
  overhead   the same for 1,024 float32 elements by the host's clock; layer: torch, op or wrapper;
             gradient: whether x requires one and autograd is on; no_grad: whether both tensors
             require one, under torch.no_grad()
  skipped    the sizes that could not be measured, and why
  checks     with --check: what, value, limit (such as "<= 1.05"), passed
"""

import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TextIO

Row = dict[str, Any]


@dataclass
class Result:
    machine: dict[str, Any]
    device: str
    rounds: int
    schema_version: int = 2
    bandwidth: list[Row] = field(default_factory=list)
    overhead: list[Row] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    checks: list[Row] = field(default_factory=list)


class Progress:
    """Shows a bar on a terminal, and elsewhere a line for each tenth of the work."""

    def __init__(self, total: int, stream: TextIO | None = None) -> None:
        self.total, self.done, self.stream = total, 0, stream or sys.stderr
        self.is_terminal = self.stream.isatty()

    def step(self, what: str) -> None:
        """Announces the step that begins now."""
        if self.is_terminal:
            filled = 30 * self.done // self.total
            bar = "#" * filled + "." * (30 - filled)
            self.stream.write(f"\r\x1b[K[{bar}] {self.done}/{self.total} {what}")
        elif self.done == 0 or 10 * self.done // self.total > 10 * (self.done - 1) // self.total:
            self.stream.write(f"{self.done}/{self.total} {what}\n")
        self.stream.flush()
        self.done += 1

    def close(self) -> None:
        if self.is_terminal:
            self.stream.write("\r\x1b[K")


def label(row: Row) -> str:
    """Names a row: torch.add, torch.add(x, n), my_add, my_add wrapper, ..., also with a gradient."""
    if row["layer"] == "torch":
        name = str(row["beside"]).removesuffix("(x, y)")
        name = name if len(name) < 20 else str(row["name"]).rpartition(".")[2] + " of torch"
    else:
        name = str(row["name"]) + (" wrapper" if row["layer"] == "wrapper" else "")
    return name + (
        ", gradient" if row.get("gradient") else ", no_grad" if row.get("no_grad") else ""
    )


def text(result: Result) -> str:
    machine, version = result.machine, result.machine["build"]["version"]
    lines = [f"{machine['device']}, torch {machine['torch']}, {machine['package']} {version}"]
    for dtype in dict.fromkeys(row["dtype"] for row in result.bandwidth):
        lines += ["", *bandwidth_table(dtype, result.bandwidth)]
    lines += ["", "One call of 1,024 float32 elements, the host's time (middle half of the rounds)"]
    for row in result.overhead:
        time = f"{row['us']:7.2f} us ({row['us_q1']:.2f} - {row['us_q3']:.2f})"
        lines.append(f"  {label(row):<32}{time:<32}{row['time_ratio']:.3f} x torch's own")
    lines += [f"skipped: {reason}" for reason in result.skipped]
    if result.checks:
        lines.append("")
    return "\n".join([*lines, *verdicts(result.checks)])


def verdicts(checks: list[Row]) -> list[str]:
    return [
        f"{'pass' if c['passed'] else 'FAIL'}  {c['what']}: {c['value']:.3f} {c['limit']}"
        for c in checks
    ]


def bandwidth_table(dtype: str, bandwidth: list[Row]) -> list[str]:
    """Makes a line for each size and a column for each op."""
    sizes: dict[int, list[Row]] = {}
    for row in bandwidth:
        if row["dtype"] == dtype:
            sizes.setdefault(row["elements"], []).append(row)
    names = map(label, next(iter(sizes.values())))
    lines = [f"{dtype}: GB/s (ratio to torch's own; *: the data may have come from the cache)"]
    lines.append(f"{'elements':>9} " + "".join(f"{name:>20}" for name in names))
    for elements, rows in sizes.items():
        size = f"2^{elements.bit_length() - 1}"
        cells = (f"{row['gb_per_s']:,.1f} ({1 / row['time_ratio']:.3f})" for row in rows)
        mark = "*" if rows[0]["in_cache"] else " "
        lines.append(f"{size:>9}{mark}" + "".join(f"{cell:>20}" for cell in cells))
    return lines


# --- The promised ratios ------------------------------------------------------------------------


def judge(result: Result, timed: str) -> list[Row]:
    """Judges the promises that hold for this device: the timed op's bandwidth and, on CUDA, the cost of a call."""
    checks: list[Row] = []

    def check(what: str, value: float, relation: str, limit: float) -> None:
        passed = value >= limit if relation == ">=" else value <= limit
        sentence = f"{relation} {limit:g}"
        checks.append({"what": what, "value": value, "limit": sentence, "passed": passed})

    for row in result.bandwidth:
        if row["name"] != timed:
            continue
        what = f"{timed}, {row['dtype']}, 2^{row['elements'].bit_length() - 1} elements"
        if result.device == "cpu":
            check(f"{what}, time / torch's own", row["time_ratio"], "<=", 1.1)
        else:
            check(f"{what}, bandwidth / torch's own", 1 / row["time_ratio"], ">=", 0.99)
    # In layer "op" only the timed op is judged, because calls of others may have to choose an overload.
    limits = {"": 1.15, "no_grad": 1.25, "gradient": 2}
    for row in result.overhead:
        how = "gradient" if row["gradient"] else "no_grad" if row["no_grad"] else ""
        limit = limits[how] if row["layer"] == "wrapper" else None
        if (row["layer"], row["name"], how) == ("op", timed, ""):
            limit = 2
        if result.device == "cuda" and limit:
            what = f"{label(row)}, 1,024 elements, time / torch's own"
            check(what, row["time_ratio"], "<=", limit)
    return checks


# --- Files --------------------------------------------------------------------------------------


def write(result: Result, folder: Path) -> list[str]:
    return write_files(asdict(result), folder / "benchmark", lambda path: plot(result, path))


def in_lines(result: Row) -> str:
    """Writes JSON with one line for each key and each row of a list, which is short and easy to compare."""

    def text(value: object) -> str:
        if isinstance(value, list):
            return "[\n  " + ",\n  ".join(json.dumps(row) for row in value) + "\n ]"
        return json.dumps(value)

    return "{\n" + ",\n".join(f' "{key}": {text(result[key])}' for key in result) + "\n}\n"


def write_files(result: Row, path: Path, draw: Callable[[Path], None]) -> list[str]:
    """Writes JSON and, if matplotlib is installed, the plot; returns lines that say so."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data, picture = path.with_suffix(".json"), path.with_suffix(".png")
    data.write_text(in_lines(result))
    try:
        import matplotlib
    except ImportError:
        return [f"wrote {data}", "no plot: matplotlib is not installed (pip install matplotlib)"]
    matplotlib.use("Agg")
    draw(picture)
    return [f"wrote {data}", f"wrote {picture}"]


def plot(result: Result, path: Path) -> None:
    """Plots bandwidth over size, one panel per dtype, and a panel of bars for the cost of a call."""
    import matplotlib.pyplot as plt

    dtypes = list(dict.fromkeys(row["dtype"] for row in result.bandwidth))
    columns = min(4, len(dtypes) + 1)
    lines = -(-(len(dtypes) + 1) // columns)
    figure, grid = plt.subplots(
        lines, columns, figsize=(5 * columns, 4 * lines), squeeze=False, layout="constrained"
    )
    panels = list(grid.flat)
    for panel, dtype in zip(panels, dtypes, strict=False):
        rows = [row for row in result.bandwidth if row["dtype"] == dtype]
        for name in dict.fromkeys(map(label, rows)):
            points = [(row["elements"], row["gb_per_s"]) for row in rows if label(row) == name]
            style = "--" if name.startswith("torch") else "-"
            panel.plot(*zip(*points, strict=True), style, marker=".", label=name)
        cached = [row["elements"] for row in rows if row["in_cache"]]
        if cached:
            panel.axvspan(min(cached), max(cached), color="0.93", label="may be in cache")
        panel.set(title=dtype, xlabel="elements", ylabel="GB/s", xscale="log", yscale="log")
        panel.set_xscale("log", base=2)
        panel.legend(fontsize="small")
    bars = panels[len(dtypes)]
    names, times = [label(row) for row in result.overhead], [row["us"] for row in result.overhead]
    spread = [
        [row["us"] - row["us_q1"] for row in result.overhead],
        [row["us_q3"] - row["us"] for row in result.overhead],
    ]
    bars.barh(
        names, times, xerr=spread, color=["0.6" if n.startswith("torch") else "C0" for n in names]
    )
    bars.invert_yaxis()
    bars.set(title="one call of 1,024 float32 elements", xlabel="microseconds")
    for unused in panels[len(dtypes) + 1 :]:
        unused.set_axis_off()
    figure.suptitle(f"{result.machine['device']}, torch {result.machine['torch']}")
    figure.savefig(path, dpi=110)
    plt.close(figure)

"""Writes what scripts/bench_build measured: JSON, the table, the plot; says which promises hold."""

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs/bench"
# Row -> how many times faster than the usual way it must be.
PROMISES = {"ours-cold": 15, "ours-edit": 50, "ours-cached": 60}
NOOP_SECONDS = 1.0


def write(result: dict[str, Any], folder: Path = DOCS) -> None:
    rows = {row["name"]: row for row in result["rows"]}
    usual = rows["usual"]["seconds"]
    for row in result["rows"]:
        row["times_faster"] = round(usual / row["seconds"], 1)
    kept = {name: rows[name]["times_faster"] >= times for name, times in PROMISES.items()}
    kept["ours-noop"] = rows["ours-noop"]["seconds"] < NOOP_SECONDS
    result["promises_kept"] = kept
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "build.json").write_text(json.dumps(result, indent=2) + "\n")
    (folder / "build.md").write_text(table(result))
    plot(result, folder / "build.svg")
    print(table(result))
    for name, is_kept in kept.items():
        print(f"{'kept' if is_kept else 'NOT KEPT'}: {name}")


def table(result: dict[str, Any]) -> str:
    about = "{cores} cores ({cpu}), nvcc {nvcc}, g++ {compiler}, torch {torch}"
    targets = result["rows"][0]["targets"].replace(";", ", ")
    lines = [
        "# Builds: the usual way and ours",
        "",
        f"`make bench-build` on {about.format(**result['machine'])}; the same ops, dtypes and GPU "
        f"targets ({targets}; one target is 9.0).",
        "",
        "| build | seconds | times faster |",
        "|---|---:|---:|",
    ]
    for row in result["rows"]:
        lines.append(f"| {row['what']} | {row['seconds']:,.1f} | {row['times_faster']:,.1f} |")
    usual, ours = (row for row in result["rows"] if "wheel_bytes" in row)
    lines += ["", "| size | the usual way | ours |", "|---|---:|---:|"]
    for what in ("library", "wheel"):
        both = (f"{row[f'{what}_bytes'] / 1e6:.2f} MB" for row in (usual, ours))
        lines.append(f"| {what} | {' | '.join(both)} |")
    return "\n".join([*lines, "", "![The same as a plot](build.svg)", ""])


def plot(result: dict[str, Any], file: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "build"  # the same figures give the same file
    import matplotlib.pyplot as plt

    rows = result["rows"][::-1]
    figure, axes = plt.subplots(figsize=(8, 3.8), layout="constrained")
    colours = ["tab:blue" if row["name"].startswith("ours") else "tab:gray" for row in rows]
    bars = axes.barh([row["what"] for row in rows], [row["seconds"] for row in rows], color=colours)
    axes.bar_label(bars, [f"{row['seconds']:,.1f} s" for row in rows], padding=3)
    axes.set_xscale("log")
    axes.set_xlim(right=max(row["seconds"] for row in rows) * 4)
    axes.set_xlabel("seconds (logarithmic)")
    figure.savefig(file, metadata={"Date": None})
    plt.close(figure)

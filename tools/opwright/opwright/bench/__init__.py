"""The arguments of `opwright bench`. Only measuring imports torch, so that other commands do not need it."""

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("package", nargs="?", help="default: that of the project in this folder")
    add("--device", choices=["cuda", "cpu"], help="default: cuda where torch can use a GPU, or cpu")
    add("--dtypes", nargs="+", metavar="DTYPE", help="default: float32 float16 int64; or all")
    sizes = "2^N elements, N from 0 to 31; default: 10 12 ... 28 (CPU: 24)"
    add("--sizes", nargs="+", type=int, metavar="N", help=sizes)
    add("--rounds", type=int, default=15, help="how often each op is measured (default: 15)")
    folder = Path("build/benchmark")
    add("--output", type=Path, default=folder, metavar="FOLDER", help=f"default: {folder}")
    check = "measure and judge the promised ratios; chooses sizes and dtypes"
    add("--check", action="store_true", help=check)
    layouts = "measure shifted, broadcast and strided operands on the GPU instead"
    add("--layouts", action="store_true", help=layouts)
    add("--profile", action="store_true", help="print torch's profiler rows instead of measuring")


def run(options: argparse.Namespace) -> int:
    """Measures, prints, and writes the report."""
    from opwright.bench import layouts, measure

    return layouts.run(options) if options.layouts else measure.run(options)

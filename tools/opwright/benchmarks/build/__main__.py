"""Times builds of the same ops, dtypes and GPU targets: the usual way, step by step, and with opwright.

    python tools/opwright/benchmarks/build [--rows usual,ours-cold] [--again]

Runs in the extension's folder, with an interpreter that has torch, opwright and wheel. Each row is `python setup.py
build` in a folder of its own. The usual way takes minutes per row, so rows that are measured are kept in
build/bench/rows.json; --again measures them anew. Writes docs/bench/build.json and build.md once every row is there.
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from opwright.bench.report import in_lines
from opwright.build.project import Project
from opwright.build.toolchain import cuda_home, matrix_targets

ROOT = Path.cwd()
BENCH = ROOT / "build/bench"
DOCS = ROOT / "docs/bench"
PYTHON = Path(sys.executable)
USUAL = Path(__file__).with_name("usual")
ONE_TARGET = "9.0"
KERNEL = "csrc/add.h"


# Row -> how many times faster than the usual way it must be.
PROMISES = {"ours-cold": 15, "ours-edit": 50, "ours-cached": 60}
NOOP_SECONDS = 1.0


@dataclass(frozen=True)
class Row:
    name: str
    what: str
    is_ours: bool
    one_target: bool = False
    environment: dict[str, str] = field(default_factory=dict)
    folder: str = ""  # of an earlier row, where this one goes on; empty: a folder of its own
    prepare: Callable[[Path], None] = lambda _: None


def edit_kernel(folder: Path) -> None:
    """A change of code, not of a comment: no cache could answer it."""
    source = folder / KERNEL
    text = source.read_text()
    assert text.count("if (i < n)") == 1
    source.write_text(text.replace("if (i < n)", f"if (i < n + {time.time_ns() % 1000} * 0)"))


OFF, ON = {"OPWRIGHT_CACHE": "off"}, {"OPWRIGHT_CACHE": "ccache"}
NO_NINJA, ONE_JOB = {"USE_NINJA": "0"}, {"MAX_JOBS": "1"}
CORES = {"MAX_JOBS": str(len(os.sched_getaffinity(0)))}
ROWS = [
    Row("usual", "the usual way: CUDAExtension on torch/extension.h", False, environment=NO_NINJA),
    Row("ninja", "... with Ninja", False, environment=ONE_JOB),
    Row("one-target", "... for one GPU target", False, True, ONE_JOB),
    Row("jobs", "... with a job for each core", False, True, CORES),
    Row("ours-cold", "ours, from nothing, every target", True, environment=OFF),
    Row("ours-one-target", "ours, from nothing, one GPU target", True, True, OFF),
    Row("ours-edit", "ours, one kernel edited", True, True, OFF, "ours-one-target", edit_kernel),
    Row("ours-cached", "ours, a clean checkout, from the cache", True, environment=ON),
    Row("ours-noop", "ours, nothing to do", True, environment=OFF, folder="ours-cold"),
]


def copy_source(row: Row, folder: Path) -> None:
    """The usual way's files, or this project's, as a clean checkout has them."""
    shutil.rmtree(folder, ignore_errors=True)
    if not row.is_ours:
        shutil.copytree(USUAL, folder)
        return
    listed = subprocess.check_output(["git", "ls-files", "-z"], cwd=ROOT, text=True)
    for name in filter(None, listed.split("\0")):
        if not name.startswith(("tests/", "docs/", "tools/")):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name, follow_symlinks=False)


def environment(row: Row, home: Path) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("CCACHE", "SCCACHE", "OPWRIGHT", "PYTHON"))
    }
    targets = [ONE_TARGET] if row.one_target else matrix_targets(Project(ROOT, "", ""), home)
    return kept | {
        "PATH": f"{PYTHON.parent}:{home}/bin:{kept['PATH']}",
        "CUDA_HOME": str(home),
        "OPWRIGHT_CUDA": "on",
        "CCACHE_DIR": str(BENCH / "ccache"),
        "TORCH_CUDA_ARCH_LIST": ";".join(targets),
        **row.environment,
    }


def timed_build(folder: Path, variables: dict[str, str], log: Path) -> float:
    with log.open("wb") as output:
        start = time.perf_counter()
        done = subprocess.run(
            [PYTHON, "setup.py", "build"], cwd=folder, env=variables, stdout=output, stderr=output
        )
        seconds = time.perf_counter() - start
    if done.returncode != 0:
        sys.exit(f"error: the build of {folder} failed; its output is in {log}")
    return seconds


def measure(row: Row, home: Path) -> dict[str, object]:
    folder = BENCH / (row.folder or row.name)
    variables = environment(row, home)
    if row.folder and not folder.is_dir():
        sys.exit(f"error: {row.name} goes on from {row.folder}; measure that first")
    if not row.folder:
        copy_source(row, folder)
    if row.environment == ON:  # what a colleague's build, or yesterday's, left in the cache
        filler = BENCH / "cache-filler"
        copy_source(row, filler)
        timed_build(filler, variables, BENCH / f"{row.name}-fill.log")
        shutil.rmtree(filler)
    row.prepare(folder)
    load = os.getloadavg()[0]
    seconds = timed_build(folder, variables, BENCH / f"{row.name}.log")
    found: dict[str, object] = {"name": row.name, "what": row.what, "seconds": round(seconds, 3)}
    found |= {"load_before": round(load, 2), "targets": variables["TORCH_CUDA_ARCH_LIST"]}
    if row.name in ("usual", "ours-cold"):
        found |= sizes(folder, variables)
    return found


def sizes(folder: Path, variables: dict[str, str]) -> dict[str, object]:
    """Bytes of the library and of the wheel with it."""
    pack = [PYTHON, "setup.py", "bdist_wheel", "--skip-build", "--dist-dir", "dist"]
    with (BENCH / f"{folder.name}.log").open("ab") as log:
        subprocess.run(pack, cwd=folder, env=variables, check=True, stdout=log, stderr=log)
    (wheel,) = (folder / "dist").glob("*.whl")
    (library,) = (folder / "build").glob("lib*/**/*.so")
    return {"library_bytes": library.stat().st_size, "wheel_bytes": wheel.stat().st_size}


def facts(home: Path) -> dict[str, object]:
    ask = "import torch; print(torch.__version__)"
    nvcc = subprocess.check_output([home / "bin/nvcc", "--version"], text=True)
    return {
        "cpu": platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "torch": subprocess.check_output([PYTHON, "-c", ask], text=True).strip(),
        "nvcc": nvcc.split("release ")[1].split(",")[0],
        "compiler": subprocess.check_output(["c++", "-dumpfullversion"], text=True).strip(),
    }


def write(result: dict[str, Any], folder: Path = DOCS) -> None:
    rows = {row["name"]: row for row in result["rows"]}
    usual = rows["usual"]["seconds"]
    for row in result["rows"]:
        row["times_faster"] = round(usual / row["seconds"], 1)
    kept = {name: rows[name]["times_faster"] >= times for name, times in PROMISES.items()}
    kept["ours-noop"] = rows["ours-noop"]["seconds"] < NOOP_SECONDS
    result["promises_kept"] = kept
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "build.json").write_text(in_lines(result))
    (folder / "build.md").write_text(table(result))
    print(table(result))
    for name, is_kept in kept.items():
        print(f"{'kept' if is_kept else 'NOT KEPT'}: {name}")


def table(result: dict[str, Any]) -> str:
    about = "{cores} cores ({cpu}), nvcc {nvcc}, g++ {compiler}, torch {torch}"
    targets = result["rows"][0]["targets"].replace(";", ", ")
    lines = [
        "# Builds: the usual way and ours",
        "",
        f"`python tools/opwright/benchmarks/build` on {about.format(**result['machine'])}; the same ops, dtypes "
        f"and GPU targets ({targets}; one target is 9.0).",
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
    return "\n".join([*lines, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", help="only these, separated by commas")
    parser.add_argument("--again", action="store_true", help="measure rows that are there anew")
    arguments = parser.parse_args()
    home = cuda_home()
    if home is None or not (ROOT / KERNEL).is_file():
        sys.exit(
            f"error: needs nvcc, and {KERNEL} in this folder; run it where the extension's setup.py lies"
        )
    BENCH.mkdir(parents=True, exist_ok=True)
    names = arguments.rows.split(",") if arguments.rows else [row.name for row in ROWS]
    if unknown := set(names) - {row.name for row in ROWS}:
        sys.exit(f"error: no row {', '.join(unknown)}; rows: {', '.join(r.name for r in ROWS)}")
    store = BENCH / "rows.json"
    measured = json.loads(store.read_text()) if store.is_file() else {}
    for row in ROWS:
        if row.name in names and (arguments.again or row.name not in measured):
            print(f"{row.name}: {row.what}", flush=True)
            measured[row.name] = measure(row, home)
            store.write_text(json.dumps(measured, indent=2))
            print(f"  {measured[row.name]['seconds']:.1f} s", flush=True)
    missing = [row.name for row in ROWS if row.name not in measured]
    if missing:
        print(f"not measured yet, so no report: {', '.join(missing)}")
        return
    write({"machine": facts(home), "rows": [measured[row.name] for row in ROWS]})


if __name__ == "__main__":
    main()

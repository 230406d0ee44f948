"""Runs in a container: prints what `wheelscope env` and Python say about each package there, as
JSON."""

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import distributions
from typing import Any

LIMIT = 300  # seconds for an import
ENV = ["wheelscope", "env", sys.prefix, "--json"]


def names_of(files: list[str]) -> set[str]:
    """Returns the names that a distribution is imported by: its modules and packages, also below
    folders without code."""
    modules, packages = set(), set()
    for *folders, file in (path.split("/") for path in files):
        if not file.endswith((".py", ".so")) or any("." in folder for folder in folders):
            continue
        if not folders:
            modules.add(file.partition(".")[0])
        elif file.startswith("__init__."):
            packages.add(".".join(folders))
    inner = {one for one in packages for other in packages if one.startswith(f"{other}.")}
    return modules | (packages - inner)


def imported(name: str) -> str | None:
    """Returns the last line of Python's message; None if the import works."""
    words = [sys.executable, "-c", f"import {name}"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return f"no end after {LIMIT} s"
    if done.returncode == 0:
        return None
    return (done.stderr.strip().splitlines() or [f"ended by signal {-done.returncode}"])[-1]


def seconds_of_env() -> list[float]:
    """Times five runs with the files in the page cache."""
    took = []
    for _ in range(5):
        start = time.perf_counter()
        subprocess.run(ENV, capture_output=True)
        took.append(time.perf_counter() - start)
    return took


def main() -> None:
    done = subprocess.run(ENV, capture_output=True, text=True)
    verdicts: dict[str, Any] = {
        one["name"]: one for one in json.loads(done.stdout)["distributions"]
    }
    names: dict[str, set[str]] = {}
    for distribution in distributions():
        key = distribution.name.lower().replace("_", "-").replace(".", "-")
        if key in verdicts:
            names[key] = names_of([str(path) for path in distribution.files or []])
    asked = sorted(set().union(*names.values()))
    took = seconds_of_env()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        words = dict(zip(asked, pool.map(imported, asked), strict=True))
    answer = [
        {**verdicts[key], "python": {name: words[name] for name in sorted(names[key])}}
        for key in sorted(names)
    ]
    json.dump({"seconds": took, "distributions": answer}, sys.stdout)


if __name__ == "__main__":
    main()

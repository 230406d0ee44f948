"""Measures where the time of an op's first call goes. It is a script because it needs a fresh process.

It prints one JSON object: the device, and the steps in order, each with its milliseconds (null if not
measured) and its meaning.
"""

import importlib
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parents[1]
LOADING = {
    "import torch": "Python modules and libtorch are loaded; no GPU is touched",
    "load the library": "it is mapped and its ops are registered; no GPU code is loaded yet",
}
ON_GPU = {
    "create the context": "the driver starts and prepares the GPU, once per process, whoever asks",
    "first allocation": "torch's allocator takes its first block from the driver",
    "first launch": "the driver loads the kernel, after compiling it if there is only PTX; it runs",
    "steady launch": "what a later call costs: launch, run, wait (1,024 elements, median of 200)",
}
ON_CPU = {
    "create the context": "not measured: torch sees no GPU here, so the steps below are the CPU's",
    "first allocation": "torch's allocator takes its first memory",
    "first launch": "the op's first call on the CPU: there is nothing left to load",
    "steady launch": "what a later call costs (1,024 elements, median of 200)",
}
MEANINGS = {True: LOADING | ON_GPU, False: LOADING | ON_CPU}


def measure_in_fresh_process() -> dict[str, Any]:
    """Runs this file by its path; returns {"problem": ...} if that fails."""
    child = subprocess.run([sys.executable, __file__], capture_output=True, text=True, check=False)
    if child.returncode != 0:
        last = (child.stderr.strip().splitlines() or ["it wrote no error"])[-1]
        return {"problem": f"the process ended with status {child.returncode}: {last}"}
    result: dict[str, Any] = json.loads(child.stdout.splitlines()[-1])
    return result


def seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def measure() -> dict[str, Any]:
    importing = seconds(lambda: __import__("torch"))
    loading = seconds(lambda: importlib.import_module(PACKAGE.name))
    import torch

    op = importlib.import_module(f"{PACKAGE.name}._opwright.ops").timed_op()

    def start_gpu() -> None:
        if torch.cuda.is_available():  # starts the driver
            torch.cuda.synchronize()  # creates the context

    starting = seconds(start_gpu)
    on_gpu = torch.cuda.is_available()
    device = "cuda:0" if on_gpu else "cpu"
    synchronize = torch.cuda.synchronize if on_gpu else lambda: None
    arguments: list[Any] = []

    def allocate() -> None:
        x, y = (torch.empty(op.shape_of(1024), device=device) for _ in range(2))
        arguments.extend(op.arguments_for(x, y))
        synchronize()

    def call() -> None:
        op.function(*arguments)
        synchronize()

    measured = [
        importing,
        loading,
        starting if on_gpu else None,
        seconds(allocate),
        seconds(call),
        statistics.median(seconds(call) for _ in range(200)),
    ]
    steps = [
        {"step": name, "ms": None if took is None else round(took * 1e3, 4), "meaning": meaning}
        for (name, meaning), took in zip(MEANINGS[on_gpu].items(), measured, strict=True)
    ]
    return {"device": device, "steps": steps}


if __name__ == "__main__":
    sys.path.insert(0, str(PACKAGE.parent))  # imports the package that this file belongs to
    print(json.dumps(measure()))

"""Measures where the time of an op's first call goes. A script, because it needs a fresh process.

Prints one JSON object: the device, and the steps in order, each with its milliseconds (null: not
measured) and what it is.
"""

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def measure_in_fresh_process() -> dict[str, Any]:
    """Runs this file by its path; {"problem": ...} where that fails."""
    child = subprocess.run([sys.executable, __file__], capture_output=True, text=True, check=False)
    if child.returncode != 0:
        last = (child.stderr.strip().splitlines() or ["it wrote no error"])[-1]
        return {"problem": f"the process ended with status {child.returncode}: {last}"}
    result: dict[str, Any] = json.loads(child.stdout.splitlines()[-1])
    return result


def measure() -> dict[str, Any]:
    steps: list[dict[str, Any]] = []

    def step(name: str, meaning: str, action: Callable[[], object] | None) -> None:
        start = time.perf_counter()
        if action:
            action()
        ms = round((time.perf_counter() - start) * 1e3, 4)
        steps.append({"step": name, "ms": ms if action else None, "meaning": meaning})

    step(
        "import torch",
        "Python modules and libtorch are loaded; no GPU is touched",
        lambda: __import__("torch"),
    )
    step(
        "load the library",
        "the library is mapped and its ops are registered; no GPU code is loaded yet",
        lambda: __import__("cuda_ext_example"),
    )
    import torch

    import cuda_ext_example

    on_gpu = torch.cuda.is_available()
    device = "cuda:0" if on_gpu else "cpu"
    synchronize = torch.cuda.synchronize if on_gpu else lambda: None
    tensors: list[torch.Tensor] = []

    def allocate() -> None:
        tensors.extend(torch.empty(1024, device=device) for _ in range(2))
        synchronize()

    def call() -> None:
        cuda_ext_example.my_fast_add(*tensors)
        synchronize()

    def timed_call() -> float:
        start = time.perf_counter()
        call()
        return time.perf_counter() - start

    if on_gpu:
        context = "the driver prepares the GPU for this process, once, whoever asks first"
        allocation = "torch's allocator takes its first block from the driver"
        launch = "the driver loads the kernel, after compiling it if there is only PTX, and runs it"
        steady = "what each later call costs: launch, run, wait (1,024 elements, median of 200)"
    else:
        context = "not measured: torch sees no GPU here, so the steps below are the CPU's"
        allocation = "torch's allocator takes its first memory"
        launch = "the op's first call on the CPU: there is nothing left to load"
        steady = "what each later call costs (1,024 elements, median of 200)"
    step("create the context", context, synchronize if on_gpu else None)
    step("first allocation", allocation, allocate)
    step("first launch", launch, call)
    median = statistics.median(timed_call() for _ in range(200))
    steps.append({"step": "steady launch", "ms": round(median * 1e3, 4), "meaning": steady})
    return {"device": device, "steps": steps}


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))  # the very package that this file belongs to
    print(json.dumps(measure()))

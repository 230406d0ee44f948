"""Smoke: runs a wheel's ops on this machine, on its GPU if it has one, and writes what it saw.

As a program it needs Python >= 3.11, torch, the wheel and the matrix file beside it:
`python ci/smoke.py WHEEL [--evidence FILE]`.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import platform
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ci.release import Release
    from ci.state import Task

LENGTHS = (0, 1, 7, 1024, 100_003)
CPU_ELEMENTS = 1 << 20
REPEATS = 20


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheel", type=Path, help="the wheel to run")
    parser.add_argument("--evidence", type=Path, help="write what was seen to this JSON file")
    parser.add_argument("--spec", type=Path, default=Path(__file__).with_name("matrix.toml"))
    parser.add_argument("--installed", action="store_true", help="use the installed package")
    arguments = parser.parse_args()
    spec = tomllib.loads(arguments.spec.read_text())["smoke"]
    package = arguments.wheel.name.split("-")[0]
    with tempfile.TemporaryDirectory() as folder:
        if not arguments.installed:
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
            subprocess.run([*command, "--target", folder, str(arguments.wheel)], check=True)
            sys.path.insert(0, folder)
        evidence = see(package, spec)
    digest = hashlib.sha256(arguments.wheel.read_bytes()).hexdigest()
    evidence = {"schema_version": 1, "wheel": arguments.wheel.name, "sha256": digest, **evidence}
    text = json.dumps(evidence, indent=2) + "\n"
    if arguments.evidence:
        arguments.evidence.parent.mkdir(parents=True, exist_ok=True)
        arguments.evidence.write_text(text)
    print(text, end="")
    return 0 if evidence["passed"] else 1


def see(package: str, spec: dict[str, Any]) -> dict[str, Any]:
    """Every op on every dtype and device: what passed, what did not, and the time of one op."""
    torch: Any = importlib.import_module("torch")
    imported = importlib.import_module(package)
    ops = getattr(torch.ops, package)
    devices = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
    failures: list[str] = []
    checks = 0
    for device in devices:
        for op in spec["ops"]:
            for case in (_dtype_case, _arange_case, _graph_case):
                for dtype in spec["dtypes"] if case is _dtype_case else ["int64"]:
                    if case is _graph_case and device == "cpu":
                        continue
                    checks += 1
                    try:
                        case(torch, getattr(ops, op["op"]), op, getattr(torch, dtype), device)
                    except Exception as error:
                        line = str(error).strip().splitlines()[:1]
                        failures.append(f"{op['op']} {dtype} {device} {case.__name__}: {line}")
    return {
        "package_version": imported.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "torch": torch.__version__,
        "torch_cuda": torch.version.cuda,
        "gpu": _gpu(torch) if "cuda" in devices else None,
        "checks": checks,
        "failures": failures,
        "timing": {device: _timing(torch, ops, spec, device) for device in devices},
        "passed": not failures,
    }


def _others(op: dict[str, Any], tensor: Any) -> list[Any]:
    scalar = 3 if not (tensor.is_floating_point() or tensor.is_complex()) else 0.5
    return [tensor.flip(0) if kind == "tensor" else scalar for kind in op["args"][1:]]


def _expect(torch: Any, function: Any, op: dict[str, Any], tensor: Any) -> None:
    arguments = [tensor, *_others(op, tensor)]
    torch.testing.assert_close(function(*arguments), getattr(torch, op["reference"])(*arguments))


def _dtype_case(torch: Any, function: Any, op: dict[str, Any], dtype: Any, device: str) -> None:
    for length in LENGTHS:
        values = torch.arange(length, device=device) % 50
        _expect(torch, function, op, values.to(dtype))


def _arange_case(torch: Any, function: Any, op: dict[str, Any], dtype: Any, device: str) -> None:
    _expect(torch, function, op, torch.arange(5, dtype=dtype, device=device))
    _expect(torch, function, op, torch.arange(5, dtype=dtype, device=device) + (1 << 53))


def _graph_case(torch: Any, function: Any, op: dict[str, Any], dtype: Any, device: str) -> None:
    """Captured once, replayed on other data."""
    tensor = torch.arange(1000, dtype=dtype, device=device)
    rest = _others(op, tensor)
    function(tensor, *rest)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = function(tensor, *rest)
    tensor.mul_(7)
    graph.replay()
    torch.cuda.synchronize()
    torch.testing.assert_close(result, getattr(torch, op["reference"])(tensor, *rest))


def _gpu(torch: Any) -> dict[str, str]:
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    driver = subprocess.run(query, capture_output=True, text=True).stdout.split("\n")[0]
    major, minor = torch.cuda.get_device_capability()
    name = torch.cuda.get_device_name()
    return {"name": name, "capability": f"{major}.{minor}", "driver": driver}


def _timing(torch: Any, ops: Any, spec: dict[str, Any], device: str) -> dict[str, Any]:
    """The best time of the op and of torch's own, and the bandwidth of two reads and one write."""
    timing = spec["timing"]
    elements = timing["elements"] if device == "cuda" else CPU_ELEMENTS
    (op,) = (op for op in spec["ops"] if op["op"] == timing["op"])
    tensor = torch.ones(elements, dtype=getattr(torch, timing["dtype"]), device=device)
    arguments = [tensor, *_others(op, tensor)]
    seconds = {}
    for name, function in (
        (op["op"], getattr(ops, op["op"])),
        (f"torch.{op['reference']}", getattr(torch, op["reference"])),
    ):
        times = []
        for _ in range(REPEATS):
            _synchronize(torch, device)
            began = time.perf_counter()
            function(*arguments)
            _synchronize(torch, device)
            times.append(time.perf_counter() - began)
        seconds[name] = min(times)
    gigabytes = 3 * elements * tensor.element_size() / 1e9
    return {
        "dtype": timing["dtype"],
        "elements": elements,
        "microseconds": {name: round(value * 1e6, 1) for name, value in seconds.items()},
        "gigabytes_per_second": {n: round(gigabytes / value, 1) for n, value in seconds.items()},
    }


def _synchronize(torch: Any, device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def tasks(release: Release) -> list[Task]:
    """The step: each wheel run here where it can be, and the GPU evidence looked up."""
    from ci import evidence

    return evidence.tasks(release)


if __name__ == "__main__":
    sys.exit(main())

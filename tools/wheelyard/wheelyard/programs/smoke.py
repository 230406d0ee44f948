"""Smoke: runs a wheel on this machine, on its GPU if it has one, and writes what it saw.

It needs nothing but Python >= 3.10, torch and the wheel:

    python smoke.py WHEEL --spec-command "python -m mypackage --smoke-spec" --evidence FILE

A spec is JSON: `checks`, each with a `call` and the `reference` that gives the right answer, Python expressions over
torch, the tensors x and y and the number n; and `timing`, one check to be timed. `--spec FILE` reads it from a file.
`--command` runs a command instead, which succeeds where the package works. With neither, the package is imported.
`--tests FOLDER` also has pytest run the tests in a copy of that folder, beside the wheel alone.

The evidence names each file of the wheel that was loaded, by the sha256 of the very file, and is refused where another
one was: an editable installation of the same name, or a library found elsewhere. It also keeps how earlier runs of the
same wheel ended that were written to the same file; one that crashed has left there that it did not end.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import xml.etree.ElementTree as ElementTree
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

SHAPES = [[0], [1], [7], [1024], [100_003]]
CPU_ELEMENTS = 1 << 20
GPU_SHAPE = [1 << 28]
EXACT_IN_DOUBLE = (
    1 << 53
)  # whole numbers beyond it lose bits where an op computes in floating point
REPEATS = 20  # measurements, of which the best counts
CALLS = 5  # of each measurement on a GPU
PYTEST = "python -m pytest -q -p no:cacheprovider"
NAMED = 20  # tests that failed
RUN = ("passed", "failures")  # what is kept of each run


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("wheel", type=Path, help="the wheel to run")
    parser.add_argument("--import-name", help="what is imported (default: the wheel's name)")
    parser.add_argument("--spec", type=Path, help="the checks: a JSON file, or a matrix.toml")
    parser.add_argument("--spec-command", help="a command of the package that prints them")
    parser.add_argument("--command", help="a command that succeeds where the package works")
    parser.add_argument("--tests", type=Path, help="a folder of tests to run, too")
    parser.add_argument("--tests-command", default=PYTEST, help="what runs pytest there")
    parser.add_argument("--evidence", type=Path, help="write what was seen to this JSON file")
    parser.add_argument("--installed", action="store_true", help="use the installed package")
    arguments = parser.parse_args()
    package = arguments.import_name or arguments.wheel.name.split("-")[0]
    digest = _sha256(arguments.wheel.read_bytes())
    about = {"schema_version": 4, "wheel": arguments.wheel.name, "sha256": digest}
    runs = earlier_runs(arguments.evidence, digest)
    with tempfile.TemporaryDirectory() as folder:
        if not arguments.installed:
            command = [sys.executable, "-I", "-m", "pip", "--isolated", "install", "--quiet"]
            command += ["--no-deps", "--no-index", "--target", folder, str(arguments.wheel)]
            subprocess.run(command, check=True)
            sys.path.insert(0, folder)
            os.environ["PYTHONPATH"] = os.pathsep.join(
                filter(None, [folder, os.environ.get("PYTHONPATH")])
            )
        torch = importlib.import_module("torch")
        cut = {**about, "program": _program(), "passed": False, "failures": ["the run did not end"]}
        write(arguments.evidence, {**cut, "runs": [*runs, {n: cut[n] for n in RUN}]})
        evidence = see(torch, package, arguments)
    evidence["passed"] = not evidence["failures"]
    how = {"installed": arguments.installed, "runs": [*runs, {n: evidence[n] for n in RUN}]}
    evidence = {**about, **how, **evidence}
    evidence["digest"] = _digest_of(evidence)
    print(write(arguments.evidence, evidence), end="")
    return 0 if evidence["passed"] else 1


def write(file: Path | None, evidence: dict[str, Any]) -> str:
    text = json.dumps(evidence, indent=2) + "\n"
    if file:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return text


def read_spec(arguments: argparse.Namespace) -> dict[str, Any]:
    if arguments.spec and arguments.spec.suffix == ".toml":  # a project's matrix
        import tomllib

        return dict(tomllib.loads(arguments.spec.read_text())["smoke"])
    if arguments.spec:
        return dict(json.loads(arguments.spec.read_text()))
    if arguments.spec_command:
        done = run(arguments.spec_command)
        return dict(json.loads(done.stdout))
    return {}


def run(command: str) -> subprocess.CompletedProcess[str]:
    """A command of the package."""
    done = _call(command)
    if done.returncode != 0:
        raise RuntimeError(
            f"`{command}` failed (exit code {done.returncode})\n{done.stdout}{done.stderr}"
        )
    return done


def _call(
    command: str, env: dict[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """A command with this Python as `python`."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    told = {**os.environ, "PATH": path, **(env or {})}
    return subprocess.run(
        command, shell=True, env=told, cwd=cwd, capture_output=True, text=True, errors="replace"
    )


def run_tests(folder: Path, command: str) -> dict[str, Any]:
    """What pytest counts, and which files these tests are."""
    files = {f.relative_to(folder).as_posix(): f for f in folder.rglob("*") if f.is_file()}
    own = {n: f for n, f in files.items() if "__pycache__" not in n and not f.is_symlink()}
    digests = {name: _sha256(file.read_bytes()) for name, file in own.items()}
    with tempfile.TemporaryDirectory() as place:
        copy = shutil.copytree(folder, Path(place, "tests"), symlinks=True)
        report = Path(place, "report.xml")
        done = _call(command, {"PYTEST_ADDOPTS": shlex.quote(f"--junitxml={report}")}, copy)
        print(done.stdout + done.stderr, file=sys.stderr)
        cases = list(ElementTree.parse(report).iter("testcase")) if report.exists() else []
    wrong = [c for c in cases if c.find("failure") is not None or c.find("error") is not None]
    skipped = sum(case.find("skipped") is not None for case in cases)
    return {
        "files": _digest_of(digests),
        "command": command,
        "exit_code": done.returncode,
        "passed": len(cases) - len(wrong) - skipped,
        "failed": len(wrong),
        "skipped": skipped,
        "failures": [f"{case.get('classname')}::{case.get('name')}" for case in wrong[:NAMED]],
    }


def earlier_runs(file: Path | None, digest: str) -> list[dict[str, Any]]:
    """How runs of the same wheel by this program ended that the evidence file tells of."""
    if not file or not file.exists():
        return []
    try:
        seen = json.loads(file.read_text())
        is_same = (seen["sha256"], seen["program"]) == (digest, _program())
        return list(seen["runs"]) if is_same else []
    except (ValueError, KeyError, TypeError):
        return []


def see(torch: Any, package: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """Every check on every dtype and device: what passed, what did not, and the time of one."""
    devices = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
    failures: list[str] = []
    passed: dict[str, int] = {}
    spec: dict[str, Any] = {}
    loaded: dict[str, str] = {}
    imported = None

    def attempt(what: str, action: Callable[[], Any]) -> Any:
        try:
            return action()
        except (Exception, SystemExit) as error:
            print(f"error: {what}: {error}", file=sys.stderr)
            failures.append(f"{what}: {str(error).strip().splitlines()[:1]}")

    imported = attempt(f"import {package}", lambda: importlib.import_module(package))
    if imported:
        spec = attempt("the spec", lambda: read_spec(arguments)) or {}
    for device in devices:
        for check in spec.get("checks", []):
            for dtype in check["dtypes"]:
                for case in (_shapes, _graph) if device == "cuda" else (_shapes,):
                    key = f"{check['name']} {dtype} {device} {case.__name__.strip('_')}"
                    try:
                        passed[key] = case(torch, check, getattr(torch, dtype), device)
                    except Exception as error:
                        failures.append(f"{key}: {str(error).strip().splitlines()[:1]}")
    if imported and arguments.command:
        attempt("the command", lambda: run(arguments.command))
    tests = None
    if imported and arguments.tests:
        tests = attempt("the tests", lambda: run_tests(arguments.tests, arguments.tests_command))
        if tests and (tests["exit_code"] != 0 or not tests["passed"]):
            counts = f"{tests['passed']} passed, {tests['failed']} failed, exit code {tests['exit_code']}"
            failures.append(f"the tests: {counts}")
    if imported:
        loaded = attempt("the loaded files", lambda: loaded_from(arguments.wheel, imported)) or {}
    return {
        "package_version": getattr(imported, "__version__", None),
        "python": platform.python_version() + ("t" if _is_free_threaded() else ""),
        "gil": getattr(sys, "_is_gil_enabled", lambda: True)(),
        "machine": platform.machine(),
        "torch": torch.__version__,
        "torch_cuda": torch.version.cuda,
        "gpu": _gpu(torch) if "cuda" in devices else None,
        "program": _program(),
        "spec": _digest_of(spec),
        "command": arguments.command,
        "loaded": loaded,
        "checks": passed,
        "tests": tests,
        "timing": {d: _timing(torch, spec, d) for d in devices} if spec.get("timing") else {},
        "failures": failures,
    }


def loaded_from(wheel: Path, package: Any) -> dict[str, str]:
    """The sha256 of each of the wheel's modules and libraries in this process, read from where it was loaded from."""
    name = package.__name__
    if not package.__file__:
        raise RuntimeError(f"{name} is a namespace; --import-name must name a module within it")
    with zipfile.ZipFile(wheel) as archive:
        members = {
            re.sub(r"^[^/]+\.data/(pure|plat)lib/", "", member): _sha256(archive.read(member))
            for member in archive.namelist()
        }
    modules = {_module(member) for member in members if member.endswith((".py", ".pyc", ".so"))}
    libraries = {Path(member).name for member in members if ".so" in Path(member).suffixes}
    loaded, others = set(), set()
    for module, file in _files():
        is_ours = module in modules or f"{module}.".startswith(f"{name}.")
        if is_ours and module != "__main__":  # which is this program
            loaded.add(file)
        elif file.name.startswith("__init__."):
            others.add(file.parent)
        elif "." in module:  # in a namespace, which has no file
            others.add(file)
    others -= {folder for file in loaded for folder in file.parents}
    for line in _mapped():
        file = Path(line.split(maxsplit=5)[5].rstrip("\n"))
        if file.name in libraries and not others.intersection([file, *file.parents]):
            loaded.add(file)  # torch and many more have a _C, too
    main = Path(package.__file__).resolve()
    root = main.parents[name.count(".") + main.name.startswith("__init__.")]
    found = {}
    for file in sorted(loaded):
        relative = file.relative_to(root).as_posix() if file.is_relative_to(root) else ""
        digest = _sha256(file.read_bytes())
        if members.get(relative) != digest:
            raise RuntimeError(f"{file} was loaded, which is no file of {wheel.name}")
        found[relative] = digest
    return found


def _module(member: str) -> str:
    """pkg/__init__.py -> pkg, pkg/_C.abi3.so -> pkg._C"""
    folder, _, file = member.rpartition("/")
    return ".".join(
        part for part in (*folder.split("/"), file.split(".")[0]) if part not in ("", "__init__")
    )


def _files() -> list[tuple[str, Path]]:
    """The imported modules that have a file."""
    found = [
        (name, getattr(module, "__file__", None)) for name, module in list(sys.modules.items())
    ]
    return [(name, Path(file).resolve()) for name, file in found if isinstance(file, str)]


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _mapped() -> list[str]:
    lines = Path("/proc/self/maps").read_text().splitlines()
    return [line for line in lines if len(line.split(maxsplit=5)) == 6]


def _program() -> str:
    return _sha256(Path(__file__).read_bytes())


def _digest_of(value: Any) -> str:
    return _sha256(json.dumps(value, sort_keys=True).encode())


def _is_free_threaded() -> bool:
    return bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


def _values(
    torch: Any, shape: list[int], dtype: Any, device: str, beyond: int = 0
) -> dict[str, Any]:
    """What expressions may name: whole numbers that every dtype holds exactly."""
    count = 1
    for size in shape:
        count *= size
    x = (torch.arange(count, device=device) % 50 + beyond).reshape(shape).to(dtype)
    is_whole = not (x.is_floating_point() or x.is_complex())
    return {"torch": torch, "x": x, "y": x.flip(0), "n": 3 if is_whole else 0.5}


def _evaluate(expression: str, values: dict[str, Any]) -> Any:
    # As globals, with Python's own names: a lambda sees no locals, and torch imports modules from within it.
    return eval(expression, dict(values))


def _close(torch: Any, check: dict[str, Any], values: dict[str, Any], actual: Any) -> None:
    tolerances = {name: check[name] for name in ("rtol", "atol") if name in check}
    torch.testing.assert_close(actual, _evaluate(check["reference"], values), **tolerances)


def _shapes(torch: Any, check: dict[str, Any], dtype: Any, device: str) -> int:
    shapes = check.get("shapes") or SHAPES
    beyond = (0, EXACT_IN_DOUBLE) if dtype == torch.int64 else (0,)
    for shape in shapes:
        for start in beyond:
            values = _values(torch, shape, dtype, device, start)
            _close(torch, check, values, _evaluate(check["call"], values))
    return len(shapes) * len(beyond)


def _graph(torch: Any, check: dict[str, Any], dtype: Any, device: str) -> int:
    """Captured once, replayed on other data."""
    shape = max(check.get("shapes") or SHAPES, key=lambda sizes: sizes[-1])
    values = _values(torch, shape, dtype, device)
    _evaluate(check["call"], values)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = _evaluate(check["call"], values)
    values["x"].copy_(values["x"].flip(0))
    graph.replay()
    torch.cuda.synchronize()
    _close(torch, check, values, result)
    return 1


def _gpu(torch: Any) -> dict[str, str]:
    driver = _call("nvidia-smi --query-gpu=driver_version --format=csv,noheader").stdout
    major, minor = torch.cuda.get_device_capability()
    name = torch.cuda.get_device_name()
    return {"name": name, "capability": f"{major}.{minor}", "driver": driver.split("\n")[0]}


def _timing(torch: Any, spec: dict[str, Any], device: str) -> dict[str, Any]:
    """The best time of the call and of its reference, and the bandwidth that follows."""
    timing = spec["timing"]
    (check,) = (check for check in spec["checks"] if check["name"] == timing["name"])
    shape = timing.get("shape", GPU_SHAPE)
    if device == "cpu":  # fewer elements, of the same rank
        shape = [*[1] * (len(shape) - 1), CPU_ELEMENTS]
    values = _values(torch, shape, getattr(torch, timing.get("dtype", "float32")), device)
    seconds = {}
    for name, expression in ((check["name"], check["call"]), ("reference", check["reference"])):
        clock = _gpu_seconds if device == "cuda" else _host_seconds
        seconds[name] = min(clock(torch, expression, values) for _ in range(REPEATS))
    gigabytes = timing.get("bytes_per_element", 12) * values["x"].numel() / 1e9
    return {
        "dtype": str(values["x"].dtype).removeprefix("torch."),
        "elements": values["x"].numel(),
        "microseconds": {name: round(value * 1e6, 1) for name, value in seconds.items()},
        "gigabytes_per_second": {n: round(gigabytes / value, 1) for n, value in seconds.items()},
    }


def _host_seconds(_: Any, expression: str, values: dict[str, Any]) -> float:
    began = time.perf_counter()
    _evaluate(expression, values)
    return time.perf_counter() - began


def _gpu_seconds(torch: Any, expression: str, values: dict[str, Any]) -> float:
    """The GPU's time per call: the host enqueues the later ones while the first one runs."""
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    start.record()
    for _ in range(CALLS):
        _evaluate(expression, values)
    stop.record()
    torch.cuda.synchronize()
    return float(start.elapsed_time(stop)) / 1e3 / CALLS


if __name__ == "__main__":
    sys.exit(main())

"""The doctor, `python -m EXTENSION`: says what this installation can do on this machine.

It works without a GPU and even if the package cannot be imported, so this file's head imports nothing that
may fail. Text and JSON are made from the same Diagnosis.
"""

import argparse
import importlib.metadata
import json
import platform
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import gpu as gpu_code

if TYPE_CHECKING:
    from .library import BuildInfo
    from .self_test import SelfTest

PACKAGE = Path(__file__).parents[1]


@dataclass
class Diagnosis:
    schema_version: int = 1
    package: str = str(PACKAGE)
    library: str | None = None  #: its path; None if it is missing
    version: str | None = None
    problem: str | None = None  #: why the package cannot be imported
    build: "BuildInfo | None" = None
    python: str = f"{platform.python_version()} ({sys.executable})"
    platform: str = f"{platform.system()} {platform.machine()}, {' '.join(platform.libc_ver())}"
    torch: str | None = None
    torch_cuda: str | None = None  #: the CUDA that torch was built with
    torch_problem: str | None = None  #: why torch cannot use a GPU
    why_not_fast: str | None = None  #: why small calls use only torch's documented, slower API
    driver: gpu_code.Driver = field(default_factory=gpu_code.Driver)
    gpus: list[gpu_code.Gpu] = field(default_factory=list)
    ops: list[str] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)  #: ops that the library lacks
    self_tests: "list[SelfTest]" = field(default_factory=list)
    first_call: dict[str, Any] | None = None

    def is_well(self) -> bool:
        failed = any(test.failures for test in self.self_tests)
        return not (
            self.problem or self.missing or failed or (self.first_call or {}).get("problem")
        )


def is_being_started() -> bool:
    """Returns whether Python is importing the package to run the doctor; argv[0] is "-m" until it runs."""
    return sys.argv[:1] == ["-m"] and sys.orig_argv[-len(sys.argv)].endswith(PACKAGE.name)


def diagnose(import_error: ImportError | None = None) -> Diagnosis:
    found = Diagnosis(version=_installed_version(PACKAGE.name), torch=_installed_version("torch"))
    libraries = sorted(PACKAGE.glob("lib*.so"))
    found.library = str(libraries[0]) if libraries else None
    if import_error:
        found.problem = str(import_error)
        found.driver, _ = gpu_code.find_gpus([], [])
        return found

    import torch

    from .first_call import measure_in_fresh_process
    from .library import build_info
    from .ops import listed
    from .registration import missing, why_not_fast
    from .self_test import self_test

    build, ops = build_info(), listed()
    found.build, found.version = build, build["version"]
    found.torch, found.torch_cuda = torch.__version__, torch.version.cuda
    found.driver, found.gpus = gpu_code.find_gpus(build["sass"], build["ptx"])
    found.torch_problem, found.why_not_fast = _why_torch_has_no_gpu(), why_not_fast
    devices = [] if found.torch_problem else [f"cuda:{i}" for i in range(torch.cuda.device_count())]
    found.ops, found.missing = [op.name for op in ops], dict(missing)
    found.self_tests = [self_test(device, ops) for device in ("cpu", *devices)]
    found.first_call = measure_in_fresh_process()
    return found


def _installed_version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _why_torch_has_no_gpu() -> str | None:
    import torch

    if torch.version.cuda is None:
        return "this torch was built without CUDA"
    try:
        torch.cuda.init()
    except (RuntimeError, AssertionError) as error:
        return str(error).splitlines()[0]
    return None


# --- The text ---------------------------------------------------------------------------------


def text(found: Diagnosis) -> str:
    lines = [f"{PACKAGE.name} {found.version or '(not installed as a distribution)'}"]
    lines += [f"  {name:<12}{value}" for name, value in _facts(found)]
    if found.problem:
        return "\n".join([*lines, "", "The package cannot be imported:", f"  {found.problem}", ""])

    lines += ["", "GPUs"]
    for gpu in found.gpus:
        lines.append(
            f"  cuda:{gpu.index}  {gpu.name}, compute capability {gpu.capability}: {_code(gpu)}"
        )
    if not found.gpus:
        lines.append("  none seen, so nothing below was tried on a GPU")
    elif found.torch_problem:
        lines.append(f"  not tried below, because torch cannot use them: {found.torch_problem}")

    lines += ["", f"Self-test: {len(found.ops)} ops, every dtype, dense and strided"]
    lines += [f"  MISSING {message}" for message in found.missing.values()]
    for test in found.self_tests:
        passed = test.checks - len(test.failures)
        lines.append(f"  {test.device:<8}{passed} of {test.checks} right")
        lines += [f"    WRONG {failure}" for failure in test.failures[:5]]
        if len(test.failures) > 5:
            lines.append(f"    and {len(test.failures) - 5} more; --json has all")

    first_call = found.first_call or {}
    if "problem" in first_call:
        return "\n".join([*lines, "", f"First call: FAILED, {first_call['problem']}", ""])
    lines += ["", f"First call, measured in a fresh process on {first_call['device']}"]
    for step in first_call["steps"]:
        duration = "-" if step["ms"] is None else f"{step['ms']:,.3f} ms"
        lines.append(f"  {step['step']:<20}{duration:>14}  {step['meaning']}")
    return "\n".join([*lines, ""])


def _facts(found: Diagnosis) -> list[tuple[str, str]]:
    facts = [("package", found.package), ("library", found.library or "missing")]
    if build := found.build:
        cuda = f"CUDA {build['cuda']} ({build['cuda_compiler']})" if build["cuda"] else "no CUDA"
        compilers = f"{cuda}, C++ compiler {build['compiler']}"
        facts.append(("built with", f"{compilers}, for torch >= {build['stable_abi']}"))
        targets = (", ".join(build[kind]) or "nothing" for kind in ("sass", "ptx"))
        facts.append(("GPU code", "native for {}; PTX for {}".format(*targets)))
    torch = found.torch or "not installed"
    if not found.problem:
        torch += (
            f", built with CUDA {found.torch_cuda}" if found.torch_cuda else ", built without CUDA"
        )
    facts.append(("torch", torch))
    if found.why_not_fast:
        reason = f"by torch's documented functions alone, which take longer: {found.why_not_fast}"
        facts.append(("small calls", reason))
    return [*facts, ("Python", f"{found.python}, {found.platform}"), ("driver", _driver(found))]


def _driver(found: Diagnosis) -> str:
    driver = found.driver
    if driver.cuda is None:
        return f"none seen ({driver.problem})"
    parts = [f"{driver.release or 'release unknown'}, supports CUDA {driver.cuda}"]
    needed = found.build["cuda"] if found.build else None
    if needed and int(driver.cuda.split(".")[0]) < int(needed.split(".")[0]):
        parts.append(f"which is TOO OLD for this library's CUDA {needed}: update the driver")
    if driver.problem:
        parts.append(driver.problem)
    return "; ".join(parts)


def _code(gpu: gpu_code.Gpu) -> str:
    if gpu.code == "native":
        return f"runs native code (made for {gpu.target})"
    if gpu.code == "ptx":
        return (
            f"runs PTX {gpu.target}, which the driver compiles at the first launch and then caches"
        )
    return f"NO CODE for it here; build from source with TORCH_CUDA_ARCH_LIST={gpu.capability}"


def main(import_error: ImportError | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog=f"python -m {PACKAGE.name}",
        description=f"Says what this installation of {PACKAGE.name} can do on this machine.",
        epilog="Exit status: 0 all right, 1 something is broken, 2 wrong usage.",
    )
    parser.add_argument("--json", action="store_true", help="the same as JSON")
    parser.add_argument(
        "--smoke-spec", action="store_true", help="as JSON, how a smoke test calls each op"
    )
    options = parser.parse_args()
    if options.smoke_spec and not import_error:
        from .ops import listed, smoke_spec

        sys.stdout.write(json.dumps(smoke_spec(listed()), indent=2) + "\n")
        return 0
    found = diagnose(import_error)
    sys.stdout.write(json.dumps(asdict(found), indent=2) + "\n" if options.json else text(found))
    return 0 if found.is_well() else 1

"""Checks a developer's machine, and gives each finding a verdict and the command that fixes it."""

import argparse
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from opwright.build import library, machine, toolchain
from opwright.build.project import BuildError, project_here
from opwright.runtime.gpu import code_for

OK, NOTE, FAULT = "ok", "note", "FAULT"  # builds still work with a note
OLDEST_NINJA = (1, 11)  # the first whose log `explain-build` can read


@dataclass(frozen=True)
class Finding:
    verdict: str
    text: str
    fix: str = ""  # a command


def _said(command: list[str | Path]) -> str | None:
    """Returns the output of a short command, or None if it fails or does not exist."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def ninja() -> Finding:
    found = shutil.which("ninja")
    if not found:
        return Finding(FAULT, "not on PATH: CMake cannot build without it", "pip install ninja")
    version = _said([found, "--version"])
    if version is None:
        return Finding(FAULT, f"{found} does not run", "pip install --force-reinstall ninja")
    number = version.split(".git")[0]
    if tuple(map(int, re.findall(r"\d+", number)[:2])) < OLDEST_NINJA:
        wanted = ".".join(map(str, OLDEST_NINJA))
        text = f"{number}, {found}: `opwright explain-build` needs {wanted} or newer"
        return Finding(NOTE, text, f"pip install 'ninja>={wanted}'")
    return Finding(OK, f"{number}, {found}")


def host_compiler() -> Finding:
    """Checks that the C++ compiler is not newer than nvcc's header allows."""
    name = os.environ.get("CXX") or toolchain.host_compiler() or "c++"
    path = shutil.which(name)
    if path is None:
        package = name if name.startswith("g++") else "g++"
        return Finding(FAULT, f"{name} is not on PATH", f"sudo apt-get install {package}")
    said = _said([path, "--version"]) or ""
    is_clang = "clang" in said.lower()
    version = re.search(r"version (\d+)|\) (\d+)\.", said)
    if version is None:
        fix = "sudo apt-get install g++ && export CXX=g++"
        return Finding(FAULT, f"{path} is no compiler that nvcc supports (g++, clang++)", fix)
    major = int(version[1] or version[2])
    text = f"{'clang' if is_clang else 'g++'} {major}, {path}"
    newest = toolchain.newest_host(toolchain.cuda_home(), is_clang)
    if newest and major > newest:
        package = "clang" if is_clang else "g++"
        return Finding(
            FAULT,
            f"{text}; this toolkit supports {package} up to {newest}",
            f"sudo apt-get install {package}-{newest} && export CXX={package}-{newest}",
        )
    return Finding(OK, text + (f"; supported up to {newest}" if newest else ""))


def toolkit() -> Finding:
    """Checks that the toolkit's nvcc, its headers and the nvcc on PATH have one CUDA major."""
    home = toolchain.cuda_home()
    choose = "export CUDA_HOME=/usr/local/cuda  # or wherever a complete toolkit lies"
    if home is None:
        return Finding(FAULT, "no nvcc on PATH, and CUDA_HOME is not set", choose)
    nvcc = home / "bin/nvcc"
    said = _said([nvcc, "--version"])
    release = re.search(r"release (\d+)\.(\d+)", said or "")
    if release is None:
        return Finding(FAULT, f"{nvcc} does not run", choose)
    try:
        headers = toolchain.toolkit_version(home)
    except (BuildError, OSError, IndexError, ValueError):
        missing = home / "include/cuda_runtime_api.h"
        return Finding(FAULT, f"no CUDA headers: {missing} cannot be read", choose)
    text = f"CUDA {release[1]}.{release[2]}, {nvcc}"
    if int(release[1]) != headers // 1000:
        return Finding(
            FAULT, f"mixed CUDA majors: {text}, but its headers are {headers // 1000}'s", choose
        )
    other = shutil.which("nvcc")
    on_path = re.search(r"release (\d+)", _said([other, "--version"]) or "") if other else None
    if on_path and on_path[1] != release[1]:
        return Finding(
            FAULT,
            f"mixed CUDA majors: CUDA_HOME has {release[1]}, nvcc on PATH is {on_path[1]}'s",
            f"export PATH={home}/bin:$PATH",
        )
    return Finding(OK, text)


def cache() -> Finding:
    program = toolchain.cache_program()
    if program is None:
        fix = "sudo apt-get install ccache"
        if os.environ.get("OPWRIGHT_CACHE") == "off":
            fix = "unset OPWRIGHT_CACHE"
        return Finding(NOTE, "no compiler cache: a clean build compiles everything", fix)
    if Path(program).name == "sccache":
        said = _said([program, "--show-stats"]) or ""
        counts = dict(re.findall(r"^(Cache hits|Cache misses) +(\d+)$", said, re.MULTILINE))
        hits, misses = int(counts.get("Cache hits", 0)), int(counts.get("Cache misses", 0))
    else:
        said = _said([program, "--print-stats"]) or ""
        stats = dict(re.findall(r"^(\w+)\t(\d+)$", said, re.MULTILINE))
        hits = sum(int(stats.get(f"{kind}_cache_hit", 0)) for kind in ("direct", "preprocessed"))
        misses = int(stats.get("cache_miss", 0))
    calls = hits + misses
    if not calls:
        return Finding(NOTE, f"{program} is empty: the next build fills it", "opwright dev")
    return Finding(OK, f"{program}, {hits} hits of {calls} compiles ({hits / calls:.0%})")


def jobs() -> Finding:
    free, fitting = machine.free_memory(), machine.default_jobs()
    gib = f"{free / 2**30:.1f} GiB free, {machine.cores()} cores"
    try:
        wanted = toolchain.max_jobs()
    except BuildError as error:
        return Finding(FAULT, str(error).removeprefix("error: "), "unset MAX_JOBS")
    if wanted is None:
        return Finding(OK, f"{fitting} at once by default; {gib}")
    room = max(1, free // machine.COMPILER_BYTES)
    if wanted > room:
        return Finding(
            FAULT,
            f"MAX_JOBS={wanted} compilers may need more memory than there is; {gib}",
            f"export MAX_JOBS={fitting}",
        )
    return Finding(OK, f"MAX_JOBS={wanted}; {gib}")


def targets() -> Finding:
    home = toolchain.cuda_home()
    if home is None:
        return Finding(NOTE, "not known without a toolkit", "")
    try:
        listed = toolchain.targets(project_here(), home)
    except (BuildError, OSError) as error:
        return Finding(FAULT, str(error).removeprefix("error: "), "unset TORCH_CUDA_ARCH_LIST")
    native = [target.removesuffix("+PTX") for target in listed]
    ptx = [target.removesuffix("+PTX") for target in listed if target.endswith("+PTX")]
    missing = [gpu for gpu in machine.gpu_targets() if code_for(gpu, native, ptx)[0] == "none"]
    if missing:
        fix = f"export TORCH_CUDA_ARCH_LIST={missing[0]}"
        return Finding(FAULT, f"{', '.join(listed)} has no code for this GPU, {missing[0]}", fix)
    return Finding(OK, ", ".join(listed))


def torch_headers() -> Finding:
    try:
        return Finding(OK, str(toolchain.torch_include()))
    except BuildError as error:
        return Finding(FAULT, str(error).removeprefix("error: "), "pip install 'torch>=2.10'")


def build_folders() -> Finding:
    """Warns of folders whose programs have changed, because the next build starts them anew."""
    root = project_here().root
    stamps = sorted((root / "build").glob(f"*/{library.RECIPE}"))
    for stamp in stamps:
        if changed := library.changed_since(stamp.parent):
            name = stamp.parent.relative_to(root)
            fix = "opwright dev" if name.name == "dev" else "pip install --no-build-isolation -e ."
            return Finding(FAULT, f"{name} is stale: {changed} has changed since", fix)
    names = ", ".join(stamp.parent.name for stamp in stamps)
    return Finding(OK, names or "none yet: `opwright dev` makes the first")


def gpu() -> Finding:
    install = "sudo apt-get install nvidia-driver"
    program = shutil.which("nvidia-smi")
    if program is None:
        text = "no NVIDIA driver (nvidia-smi): kernels are built here, and run elsewhere"
        return Finding(NOTE, text, install)
    query = ["--query-gpu=name,compute_cap,driver_version", "--format=csv,noheader"]
    done = subprocess.run([program, *query], capture_output=True, text=True)
    if done.returncode != 0:
        said = (done.stdout + done.stderr).strip().splitlines()
        return Finding(FAULT, f"nvidia-smi: {said[0] if said else 'fails'}", install)
    return Finding(OK, "; ".join(done.stdout.strip().splitlines()))


CHECKS: dict[str, Callable[[], Finding]] = {
    "Ninja": ninja,
    "host compiler": host_compiler,
    "CUDA toolkit": toolkit,
    "compiler cache": cache,
    "jobs": jobs,
    "GPU targets": targets,
    "torch headers": torch_headers,
    "build folders": build_folders,
    "GPU and driver": gpu,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(checks=CHECKS)


def run(arguments: argparse.Namespace) -> int:
    """Prints every finding; returns 1 if one of them is a fault."""
    faults = 0
    for name, check in arguments.checks.items():
        try:
            finding = check()
        except BuildError as error:
            finding = Finding(FAULT, str(error).removeprefix("error: "))
        faults += finding.verdict == FAULT
        print(f"{finding.verdict:6} {name:15} {finding.text}")
        if finding.fix:
            print(f"{'':22} fix: {finding.fix}")
    print("\nall is well" if not faults else f"\n{faults} to fix")
    return 1 if faults else 0

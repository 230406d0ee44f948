"""Finds the tools of a build: the CUDA toolkit, its GPU targets, torch's headers, the compiler cache.
commands.py lists the environment variables that choose them."""

import importlib.util
import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

from opwright.build import machine
from opwright.build.project import BuildError, Project, read_toml

CCACHE = Path(__file__).with_name("ccache.sh")
TARGET = r"\d+\.\d[af]?(\+PTX)?"
EVERY_GPU = ["7.5+PTX"]  # the driver compiles PTX for any newer GPU
# Names that torch's own builds accept in TORCH_CUDA_ARCH_LIST.
GENERATIONS = {
    "Volta": "7.0+PTX",
    "Turing": "7.5+PTX",
    "Ampere": "8.0;8.6+PTX",
    "Ada": "8.9+PTX",
    "Hopper": "9.0+PTX",
    "Blackwell": "10.0;10.3;12.0;12.1+PTX",
}


def choice(name: str, default: str, allowed: tuple[str, ...]) -> str:
    value = os.environ.get(name) or default
    if value not in allowed:
        raise BuildError(f"{name}={value!r} is none of {', '.join(allowed)}")
    return value


def target_machine() -> str:
    """Returns the CPU to build for. Only Linux is supported, because loader rules and wheel tags are Linux's."""
    if platform.system() != "Linux":
        raise BuildError(
            f"this extension is built on Linux alone, and this is {platform.system()}; on Windows, "
            "build in WSL 2; on macOS, in a Linux container"
        )
    return choice("OPWRIGHT_TARGET", platform.machine(), ("x86_64", "aarch64"))


def cuda_compiler() -> str:
    return choice("OPWRIGHT_COMPILER", "nvcc", ("nvcc", "clang"))


def torch_include() -> Path:
    """Finds torch's headers without importing torch, which may be built for another platform."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        raise BuildError(
            "torch is not installed, and its headers are needed; pip install 'torch>=2.10', "
            "or build with isolation, which brings it"
        )
    include = Path(spec.origin).parent / "include"
    if not (include / "torch/csrc/stable/library.h").is_file():
        raise BuildError(
            f"the torch in {include.parent} is older than 2.10; pip install 'torch>=2.10'"
        )
    return include


def is_rocm(include: Path) -> bool:
    """Returns whether the torch with these headers is AMD's build, as its version.py says."""
    version = include.parent / "version.py"
    said = version.read_text() if version.is_file() else ""
    return re.search(r"^hip\b[^=]*= *['\"]", said, re.MULTILINE) is not None


def cuda_home() -> Path | None:
    """Finds the toolkit to build with, or None."""
    if home := os.environ.get("CUDA_HOME"):
        return Path(home)
    nvcc = shutil.which("nvcc")
    if nvcc:
        return Path(nvcc).resolve().parent.parent
    default = Path("/usr/local/cuda")
    return default if (default / "bin/nvcc").is_file() else None


def toolkit_version(home: Path) -> int:
    """Reads CUDART_VERSION from the toolkit's header; 13000 means 13.0."""
    file = home / "include/cuda_runtime_api.h"
    if not file.is_file():
        raise BuildError(
            f"the CUDA toolkit in {home} has no {file.relative_to(home)} (conda keeps headers elsewhere); name a "
            "complete one by CUDA_HOME"
        )
    header = file.read_text()
    return int(header.split("#define CUDART_VERSION")[1].split()[0])


def newest_host(home: Path | None, is_clang: bool = False) -> int | None:
    """Returns the newest major of g++ or clang that the toolkit's nvcc supports, as its header says."""
    header = home / "include/crt/host_config.h" if home else None
    if header is None or not header.is_file():
        return None
    said = header.read_text()
    if is_clang:
        limit = re.search(r"clang version must be less than (\d+)", said)
        return int(limit[1]) - 1 if limit else None
    limit = re.search(r"gcc versions later than (\d+)", said)
    return int(limit[1]) if limit else None


def host_compiler() -> str | None:
    """Returns the older g++ that a build needs if c++ is one that nvcc does not support yet, as in Debian testing."""
    newest, usual = newest_host(cuda_home()), shutil.which("c++")
    if newest is None or usual is None or os.environ.get("CXX"):
        return None
    said = subprocess.run([usual, "--version"], capture_output=True, text=True).stdout
    version = re.match(r"\S+ \(.*\) (\d+)\.", said)  # clang's says otherwise
    if version is None or int(version[1]) <= newest:
        return None
    older = [f"g++-{major}" for major in range(newest, newest - 4, -1)]
    return next(filter(shutil.which, older), older[0])


def targets(project: Project, home: Path) -> list[str]:
    """Returns the GPU targets of TORCH_CUDA_ARCH_LIST, in which `native` means this machine's.

    If the list is empty, returns the release's. An sdist does not know those, so it is built for this
    machine's GPUs, or for every GPU if the machine has none.
    """
    wanted = os.environ.get("TORCH_CUDA_ARCH_LIST", "")
    if not wanted.strip():
        return matrix_targets(project, home) or machine.gpu_targets() or EVERY_GPU
    for name, meaning in GENERATIONS.items():
        wanted = re.sub(rf"\b{name}\b", meaning, wanted)
    listed = [target for target in re.split("[;, ]+", wanted) if target]
    if "native" in listed:
        found = machine.gpu_targets()
        if not found:
            raise BuildError(
                "TORCH_CUDA_ARCH_LIST=native, but nvidia-smi sees no GPU here; name the target, "
                "such as TORCH_CUDA_ARCH_LIST=9.0"
            )
        listed[listed.index("native") : listed.index("native") + 1] = found
    _check_targets(listed, home)
    return list(dict.fromkeys(listed))


def _check_targets(listed: list[str], home: Path) -> None:
    """Rejects targets that torch would write differently or that this toolkit's nvcc does not know."""
    wrong = [target for target in listed if not re.fullmatch(TARGET, target)]
    if wrong:
        raise BuildError(
            f"{wrong[0]!r} is not a GPU target; write targets as TORCH_CUDA_ARCH_LIST does: 9.0, 9.0a, 9.0+PTX"
        )
    nvcc = home / "bin/nvcc"
    if cuda_compiler() != "nvcc" or not nvcc.is_file():
        return
    lines = subprocess.run([nvcc, "--list-gpu-arch"], capture_output=True, text=True).stdout.split()
    known = [f"{line[8:-1]}.{line[-1]}" for line in lines if re.fullmatch(r"compute_\d+", line)]
    for target in listed:
        if known and re.sub(r"[af]|\+PTX", "", target) not in known:
            version = toolkit_version(home)
            raise BuildError(
                f"CUDA {version // 1000}.{version % 1000 // 10} does not build for {target}; "
                f"it builds for {', '.join(known)}"
            )


def max_jobs() -> int | None:
    """Returns MAX_JOBS, if it is set."""
    wanted = os.environ.get("MAX_JOBS")
    if wanted and not (wanted.isdecimal() and int(wanted)):
        raise BuildError(f"MAX_JOBS={wanted} is not a number of jobs; give one, or unset MAX_JOBS")
    return int(wanted) if wanted else None


def matrix_targets(project: Project, home: Path) -> list[str]:
    """Returns the matrix's GPU targets for the toolkit's CUDA major; none without them or without a matrix."""
    toolkits = read_toml(project.matrix).get("toolkit", {}) if project.matrix.is_file() else {}
    version = toolkit_version(home)
    for name, toolkit in sorted(toolkits.items(), reverse=True):
        if int(name.split(".")[0]) == version // 1000:
            return list(toolkit.get("targets", []))
    return []


def cache_program() -> str | None:
    """Finds the compiler cache to use; ccache is preferred, because sccache needs a running server."""
    wanted = choice("OPWRIGHT_CACHE", "auto", ("auto", "off", "ccache", "sccache"))
    if wanted == "off":
        return None
    for name in ("ccache", "sccache") if wanted == "auto" else (wanted,):
        if program := shutil.which(name):
            return program
    if wanted != "auto":
        raise BuildError(
            f"OPWRIGHT_CACHE={wanted}, but there is no {wanted} on PATH; install it, "
            "or set OPWRIGHT_CACHE=off"
        )
    return None


def cache_launcher(root: Path) -> list[str]:
    """Returns the words that CMake puts before each compiler.

    Clones in different folders share results, because paths below the root are taken relative to the build
    folder and the key leaves out what does not change an object. A store that does not answer is a miss.
    """
    program = cache_program()
    if program is None:
        return []
    if Path(program).name == "sccache":
        settings = {"SCCACHE_BASEDIRS": str(root), "SCCACHE_IGNORE_SERVER_IO_ERROR": "1"}
        return _with(settings, program)
    settings = {
        "CCACHE_BASEDIR": str(root),
        "CCACHE_NOHASHDIR": "1",
        "CCACHE_IGNOREOPTIONS": "--threads=*",
        "CCACHE_EXTRAFILES": ":".join(str(file) for file in _behind_nvcc()),
    }
    return ["/bin/sh", str(CCACHE), *_with(settings, program)]


def _with(settings: dict[str, str], program: str) -> list[str]:
    return ["/usr/bin/env", *(f"{name}={value}" for name, value in settings.items()), program]


def _behind_nvcc() -> list[Path]:
    """Returns the programs that nvcc runs, because ccache checks only nvcc itself."""
    home = cuda_home()
    found = [home / "bin/ptxas", home / "nvvm/bin/cicc"] if home else []
    given = os.environ.get("NVCC_CCBIN") or os.environ.get("CXX")
    host = shutil.which(given or host_compiler() or "c++")
    return [file for file in (*found, Path(host or "")) if file.is_file()]

"""Finds and loads the C++ library, or explains why it cannot."""

import functools
import platform
from pathlib import Path
from typing import TypedDict

OLDEST_TORCH = (2, 10)
PACKAGE = __name__.rsplit(".", 2)[0]  # the extension's package, into which this file is copied
LIBRARY = Path(__file__).parents[1] / f"lib{PACKAGE}.so"


class BuildInfo(TypedDict):
    """Facts about this build of the library."""

    version: str  #: the package's version
    compiler: str  #: the C++ compiler
    stable_abi: str  #: the oldest torch that the library's use of the stable ABI supports
    cuda: str | None  #: the CUDA toolkit, None for a build without CUDA
    cuda_compiler: str | None  #: the compiler of the kernels
    sass: list[str]  #: compute capabilities with native code, such as "9.0"
    ptx: list[str]  #: compute capabilities with PTX, which the driver compiles for newer GPUs


def library_path() -> Path:
    """Returns the path of the C++ library."""
    return LIBRARY


def _load() -> None:
    need = f"{PACKAGE} needs torch >= {OLDEST_TORCH[0]}.{OLDEST_TORCH[1]}"
    try:
        import torch
    except ImportError as error:
        raise ImportError(
            f"{need}, and torch cannot be imported ({error}); pip install torch"
        ) from error
    version = torch.__version__
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST_TORCH:
        raise ImportError(f"{need}, and torch {version} is installed; pip install --upgrade torch")
    if not LIBRARY.is_file():
        raise ImportError(
            f"{PACKAGE} has no library for this platform "
            f"({platform.system()} {platform.machine()}): {LIBRARY.name} is missing from "
            f"{LIBRARY.parent}; install a wheel for Linux on x86_64 or aarch64, or build from "
            "source with `pip install .`"
        )
    try:
        torch.ops.load_library(LIBRARY)
    except OSError as error:
        cause = str(error.__cause__ or error)
        advice = (
            "Debian's torch has that name in its package libtorch-dev"
            if cause.startswith("libtorch.so: cannot open")
            else f"if it was built for another platform, reinstall {PACKAGE}"
        )
        raise ImportError(
            f"{LIBRARY} does not load into torch {version}: {cause}; {advice}"
        ) from error


_load()

import torch  # noqa: E402  (after _load, whose errors are clearer)


@functools.cache
def _facts() -> dict[str, str]:
    lines = getattr(torch.ops, PACKAGE).build_info().splitlines()
    return dict(line.split("=", 1) for line in lines)


def build_info() -> BuildInfo:
    """Returns facts about this build of the library: version, compilers, CUDA toolkit and GPU targets."""
    facts = _facts()
    targets = facts["targets"].split(";") if facts.get("targets") else []
    return BuildInfo(
        version=facts["version"],
        compiler=facts["compiler"],
        stable_abi=facts["stable_abi"],
        cuda=facts.get("cuda"),
        cuda_compiler=facts.get("cuda_compiler"),
        sass=[target.removesuffix("+PTX") for target in targets],
        ptx=[target.removesuffix("+PTX") for target in targets if target.endswith("+PTX")],
    )


def library_problems() -> dict[str, str]:
    """What is wrong with ops in the library, by their names."""
    return {
        key.removeprefix("problem "): text
        for key, text in _facts().items()
        if key.startswith("problem ")
    }


def library_ops() -> dict[str, tuple[str, ...]]:
    """Returns the library's ops, each with the dtypes that it has kernels for."""
    entries = (entry.split(":") for entry in _facts()["ops"].split(";") if entry)
    return {name: tuple(dtypes.split(",")) for name, dtypes in entries}

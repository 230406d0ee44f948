"""Facts about the NVIDIA driver and its GPUs, and the library's code that each GPU runs.

This module calls the driver's C API, without torch, so that it finds a GPU even if torch cannot use it.
It creates no context.
"""

import ctypes
import re
from dataclasses import dataclass

# Jetson, DRIVE and Thor, which run native code only if it was made for exactly that capability.
TEGRA = {"5.3", "6.2", "7.2", "8.7", "11.0"}


@dataclass(frozen=True)
class Driver:
    cuda: str | None = None  #: the newest CUDA it supports
    release: str | None = None  #: its own version; None if NVML does not tell
    problem: str | None = None  #: why the driver or its GPUs cannot be found


@dataclass(frozen=True)
class Gpu:
    index: int
    name: str
    capability: str  #: compute capability, such as "9.0"
    code: str  #: what it runs: "native", "ptx" (the driver compiles it first) or "none"
    target: str | None  #: the compute capability that the code was made for


def code_for(capability: str, sass: list[str], ptx: list[str]) -> tuple[str, str | None]:
    """Returns the code that a GPU runs: ("native", target), ("ptx", target) or ("none", None).

    Native code runs on its own capability and on later ones of the same major version; with suffix `a`
    only on its own. PTX runs on its own and all later GPUs, unless a suffix restricts it in the same way
    (`f` to the same major version).
    """
    gpu = _parse(capability)

    def native_serves(target: str) -> bool:
        major, minor, suffix = _parse(target)
        exact = suffix == "a" or capability in TEGRA
        return major == gpu[0] and (minor == gpu[1] if exact else minor <= gpu[1])

    def ptx_serves(target: str) -> bool:
        major, minor, suffix = _parse(target)
        if suffix:
            return major == gpu[0] and (minor == gpu[1] if suffix == "a" else minor <= gpu[1])
        return (major, minor) <= gpu[:2]

    for kind, targets, serves in (("native", sass, native_serves), ("ptx", ptx, ptx_serves)):
        if nearest := max(filter(serves, targets), key=_parse, default=None):
            return kind, nearest
    return "none", None


def _parse(target: str) -> tuple[int, int, str]:
    parts = re.fullmatch(r"(\d+)\.(\d)([af]?)", target)
    if parts is None:
        raise ValueError(f"{target!r} is not a compute capability")
    return int(parts[1]), int(parts[2]), parts[3]


def find_gpus(sass: list[str], ptx: list[str]) -> tuple[Driver, list[Gpu]]:
    """Returns the driver and the GPUs that it shows to this process."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        return Driver(problem=str(error)), []
    version = ctypes.c_int()
    cuda.cuDriverGetVersion(ctypes.byref(version))
    supports = f"{version.value // 1000}.{version.value % 1000 // 10}"
    if status := cuda.cuInit(0):
        return Driver(supports, _release(), f"cuInit: {_error_name(cuda, status)}"), []
    count = ctypes.c_int()
    cuda.cuDeviceGetCount(ctypes.byref(count))
    gpus = []
    for index in range(count.value):
        name, capability = _describe(cuda, index)
        gpus.append(Gpu(index, name, capability, *code_for(capability, sass, ptx)))
    return Driver(supports, _release(), None if gpus else "it shows no GPU to this process"), gpus


def _describe(cuda: ctypes.CDLL, index: int) -> tuple[str, str]:
    device, name = ctypes.c_int(), ctypes.create_string_buffer(256)
    cuda.cuDeviceGet(ctypes.byref(device), index)
    cuda.cuDeviceGetName(name, len(name), device)
    major, minor = ctypes.c_int(), ctypes.c_int()
    cuda.cuDeviceGetAttribute(ctypes.byref(major), 75, device)  # COMPUTE_CAPABILITY_MAJOR
    cuda.cuDeviceGetAttribute(ctypes.byref(minor), 76, device)  # COMPUTE_CAPABILITY_MINOR
    return name.value.decode(errors="replace"), f"{major.value}.{minor.value}"


def _error_name(cuda: ctypes.CDLL, status: int) -> str:
    name = ctypes.c_char_p()
    known = cuda.cuGetErrorName(status, ctypes.byref(name)) == 0 and name.value
    return known.decode() if known else f"error {status}"


def _release() -> str | None:
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return None
    if nvml.nvmlInit_v2() != 0:
        return None
    text = ctypes.create_string_buffer(80)
    status = nvml.nvmlSystemGetDriverVersion(text, len(text))
    nvml.nvmlShutdown()
    return text.value.decode() if status == 0 else None

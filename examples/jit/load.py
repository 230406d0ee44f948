"""The JIT way: torch.utils.cpp_extension.load compiles the torch-free kernels on first use.

    python examples/jit/load.py

The build folder is kept: a second process starts in the time that Ninja needs to see that nothing
has changed, and an edited kernel compiles alone. Needs Ninja, a C++ compiler, and nvcc for CUDA.
"""

import time
from pathlib import Path

import opwright
import torch
from torch.utils import cpp_extension

ROOT = Path(__file__).resolve().parents[2]
CSRC = ROOT / "csrc"
ENGINE = Path(opwright.__file__).parent  # the kernels' engine and the binding to torch
BUILD = ROOT / "build"


def load(with_cuda: bool | None = None, build: Path = BUILD) -> None:
    """Makes the ops of torch.ops.cuda_ext_jit; with CUDA where torch has it and sees a GPU."""
    if with_cuda is None:
        with_cuda = torch.cuda.is_available()
    folder = build / ("jit-cuda" if with_cuda else "jit-cpu")
    folder.mkdir(parents=True, exist_ok=True)
    here = Path(__file__).parent
    binding = ("arguments", "elementwise", "layout", "library")
    sources = [here.parent / "on_cpu.cpp", *(ENGINE / f"src/{name}.cpp" for name in binding)]
    flags = ["-O3", "-std=c++17", "-DTORCH_TARGET_VERSION=0x020a000000000000"]
    if with_cuda:
        sources.append(here.parent / "on_cuda.cu")
        sources += [ENGINE / "src/driver.cpp", ENGINE / "src/cuda_error.cpp"]
        flags.append("-DOPWRIGHT_WITH_CUDA")
    cpp_extension.load(
        name="cuda_ext_jit",
        sources=[str(source) for source in sources],
        extra_include_paths=[str(here), str(CSRC), str(ENGINE / "include")],
        extra_cflags=flags,
        extra_cuda_cflags=[*flags, "--expt-relaxed-constexpr"],
        # The binding's one function of libtorch_cuda is weak, so a linker may think it not needed.
        extra_ldflags=["-Wl,--no-as-needed"],
        build_directory=str(folder),
        with_cuda=with_cuda,
        is_python_module=False,
    )


if __name__ == "__main__":
    start = time.perf_counter()
    load()
    print(f"loaded after {time.perf_counter() - start:.2f} s")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = torch.arange(5, device=device)
    print(torch.ops.cuda_ext_jit.my_add(x, x))

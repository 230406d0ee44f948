"""Builds the C++ library with CMake and Ninja; packs a wheel for every Python of one platform.

Environment:
  CUDA_EXT_CUDA         on, off or auto (the default): auto is on where a CUDA compiler is found
  CUDA_EXT_COMPILER     nvcc (the default) or clang, which then compiles everything
  CUDA_EXT_TARGET       the CPU to build for: x86_64 or aarch64 (default: this machine's)
  CUDA_HOME             the CUDA toolkit (default: the one nvcc on PATH belongs to)
  CXX                   the C++ compiler
  TORCH_CUDA_ARCH_LIST  GPU targets: "8.0;9.0+PTX" (default: those of ci/matrix.toml)
  MAX_JOBS              compilers at once
"""

import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

from setuptools import Command, Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parent.resolve()
LIBRARY = "libcuda_ext_example.so"


class BuildError(SystemExit):
    """A build that cannot go on; the message says what to do."""

    def __init__(self, message: str) -> None:
        super().__init__(f"error: {message}")


def choice(name: str, default: str, allowed: tuple[str, ...]) -> str:
    value = os.environ.get(name, default)
    if value not in allowed:
        raise BuildError(f"{name}={value!r} is none of {', '.join(allowed)}")
    return value


def target_machine() -> str:
    return choice("CUDA_EXT_TARGET", platform.machine(), ("x86_64", "aarch64"))


def cuda_compiler() -> str:
    return choice("CUDA_EXT_COMPILER", "nvcc", ("nvcc", "clang"))


def torch_include() -> Path:
    """torch's headers, found without importing torch, which may be another platform's."""
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


def cuda_home() -> Path | None:
    """The toolkit to build with, or None where there is none."""
    if home := os.environ.get("CUDA_HOME"):
        return Path(home)
    nvcc = shutil.which("nvcc")
    if nvcc:
        return Path(nvcc).resolve().parent.parent
    default = Path("/usr/local/cuda")
    return default if (default / "bin/nvcc").is_file() else None


def cuda_arguments(compiler: str) -> list[str]:
    """CMake's arguments for CUDA, decided by CUDA_EXT_CUDA and never by what GPU is visible."""
    wanted = choice("CUDA_EXT_CUDA", "auto", ("on", "off", "auto"))
    if wanted == "off":
        print("CUDA: off, as CUDA_EXT_CUDA says; this build will have no GPU code")
        return ["-DCUDA_EXT_CUDA=OFF"]
    home = cuda_home()
    tool = None if home is None else home / "bin" / ("nvcc" if compiler == "nvcc" else "ptxas")
    if home is None or tool is None or not tool.is_file():
        looked = (
            f"{tool} does not exist" if tool else "CUDA_HOME is not set and nvcc is not on PATH"
        )
        if wanted == "on":
            raise BuildError(
                f"CUDA_EXT_CUDA=on, but there is no CUDA compiler: {looked}; set CUDA_HOME"
            )
        print(f"CUDA: off, as there is no CUDA compiler ({looked}); there will be no GPU code")
        return ["-DCUDA_EXT_CUDA=OFF"]
    targets = os.environ.get("TORCH_CUDA_ARCH_LIST") or ";".join(default_targets(home))
    targets = ";".join(targets.replace(",", ";").replace(" ", ";").split(";"))
    print(f"CUDA: on, with {tool}, for {targets}")
    arguments = [
        "-DCUDA_EXT_CUDA=ON",
        f"-DCUDA_EXT_CUDA_HOME={home}",
        f"-DCUDA_EXT_TARGETS={targets}",
    ]
    if compiler == "nvcc":
        arguments.append(f"-DCMAKE_CUDA_COMPILER={tool}")
    return arguments


def default_targets(home: Path) -> list[str]:
    """The matrix's GPU targets for the toolkit's CUDA version."""
    toolkits = tomllib.loads((ROOT / "ci/matrix.toml").read_text())["toolkit"]
    header = (home / "include/cuda_runtime_api.h").read_text()
    version = int(header.split("#define CUDART_VERSION")[1].split()[0])
    for name, toolkit in sorted(toolkits.items(), reverse=True):
        if int(name.split(".")[0]) == version // 1000:
            return list(toolkit["targets"])
    raise BuildError(
        f"ci/matrix.toml has no toolkit for CUDA {version // 1000}; set TORCH_CUDA_ARCH_LIST"
    )


def compiler_arguments(compiler: str, machine: str) -> list[str]:
    """CMake's arguments for the C++ compiler, and for a CPU other than this machine's."""
    is_cross = machine != platform.machine()
    triple = f"{machine}-linux-gnu"
    arguments = []
    if compiler == "clang":
        arguments.append(f"-DCMAKE_CXX_COMPILER={os.environ.get('CXX', 'clang++')}")
        if is_cross:
            arguments.append(f"-DCMAKE_CXX_COMPILER_TARGET={triple}")
    elif is_cross:
        cross = shutil.which(f"{triple}-g++")
        if cross is None:
            package = f"g++-{triple.replace('_', '-')}"
            raise BuildError(
                f"{triple}-g++ is needed to build for {machine}; apt-get install {package}"
            )
        arguments.append(f"-DCMAKE_CXX_COMPILER={cross}")
    if is_cross:
        arguments += ["-DCMAKE_SYSTEM_NAME=Linux", f"-DCMAKE_SYSTEM_PROCESSOR={machine}"]
    return arguments


def build_folder() -> Path:
    """Kept between builds, so that a change compiles what it touches."""
    return ROOT / "build" / f"extension-{target_machine()}-{cuda_compiler()}"


class CMakeBuild(build_ext):
    """Hands the one extension to CMake; the library goes into the package."""

    def get_ext_filename(self, fullname: str) -> str:
        return str(Path(*fullname.split(".")[:-1]) / LIBRARY)

    def build_extension(self, ext: Extension) -> None:
        build = build_folder()
        build_library(build, self.distribution.get_version())
        destination = Path(self.get_ext_fullpath(ext.name))
        destination.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(build / "lib" / LIBRARY, destination)


def build_library(build: Path, version: str, target: str = "cuda_ext_example") -> None:
    compiler = cuda_compiler()
    configure = [
        *("cmake", "-S", str(ROOT / "csrc"), "-B", str(build), "-G", "Ninja"),
        f"-DCUDA_EXT_VERSION={version}",
        f"-DCUDA_EXT_COMPILER={compiler}",
        f"-DTORCH_INCLUDE_DIR={torch_include()}",
        *cuda_arguments(compiler),
        *compiler_arguments(compiler, target_machine()),
    ]
    jobs = ["-j", os.environ["MAX_JOBS"]] if os.environ.get("MAX_JOBS") else []
    try:
        # In the build folder: CMake tries to run what it compiled, and a shell that meets another
        # CPU's program may take its bytes for commands and leave files behind.
        build.mkdir(parents=True, exist_ok=True)
        subprocess.run(configure, check=True, cwd=build)
        subprocess.run(["cmake", "--build", ".", "--target", target, *jobs], check=True, cwd=build)
    except FileNotFoundError:
        raise BuildError("cmake is not installed; pip install cmake ninja") from None
    except subprocess.CalledProcessError as failed:
        raise BuildError(f"{' '.join(failed.cmd[:2])} failed; its output is above") from None


class BuildCpp(Command):
    """The library and the standalone program, without a package: `python setup.py build_cpp`."""

    user_options: ClassVar[list[tuple[str, str | None, str]]] = []

    def initialize_options(self) -> None: ...

    def finalize_options(self) -> None: ...

    def run(self) -> None:
        build_library(build_folder(), self.distribution.get_version(), "all")
        for made in (f"lib/{LIBRARY}", "bin/standalone"):
            if (build_folder() / made).is_file():
                print(f"made {build_folder() / made}")


class AnyPythonWheel(bdist_wheel):
    """The library knows nothing of Python: one wheel serves every Python of its platform."""

    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", f"linux_{target_machine()}"


setup(
    ext_modules=[Extension("cuda_ext_example._library", sources=[])],
    cmdclass={"build_ext": CMakeBuild, "build_cpp": BuildCpp, "bdist_wheel": AnyPythonWheel},
)

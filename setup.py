"""Packs a wheel for every Python of one platform; scripts/builder builds its C++ library.

Environment:
  CUDA_EXT_CUDA          on, off or auto (the default): auto is on where a CUDA compiler is found
  CUDA_EXT_COMPILER      nvcc (the default) or clang, which then compiles everything
  CUDA_EXT_TARGET        the CPU to build for: x86_64 or aarch64 (default: this machine's)
  CUDA_EXT_CACHE         auto (the default: ccache or sccache where found), ccache, sccache or off
  CUDA_EXT_BUILD_FOLDER  where it is built (default: one folder in build/ for each CPU and compiler)
  CUDA_HOME              the CUDA toolkit (default: the one nvcc on PATH belongs to)
  CXX                    the C++ compiler
  TORCH_CUDA_ARCH_LIST   GPU targets: "8.0;9.0+PTX", "Hopper", "native" (default: ci/matrix.toml's;
                         in an sdist this machine's, or PTX where there is no GPU)
  MAX_JOBS               compilers at once (default: as cores and free memory allow)
"""

import shutil
import sys
from pathlib import Path
from typing import ClassVar

from setuptools import Command, Extension, setup

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:
    sys.exit(
        "error: this Python's setuptools is older than 80, and with --no-build-isolation it must bring all that "
        "pyproject.toml's [build-system] asks for; run `pip install 'setuptools>=80' cmake ninja torch`, or leave out "
        "--no-build-isolation"
    )
from setuptools.command.build_ext import build_ext

sys.path.insert(0, str(Path(__file__).parent.resolve()))
from scripts.builder import library, toolchain


class CMakeBuild(build_ext):
    """Hands the one extension to CMake; the library goes into the package."""

    def get_ext_filename(self, fullname: str) -> str:
        return str(Path(*fullname.split(".")[:-1]) / library.LIBRARY)

    def build_extension(self, ext: Extension) -> None:
        built = library.build(library.build_folder(), self.distribution.get_version())
        destination = Path(self.get_ext_fullpath(ext.name))
        destination.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(built, destination)


class BuildCpp(Command):
    """The library and the standalone program, without a package: `python setup.py build_cpp`."""

    user_options: ClassVar[list[tuple[str, str | None, str]]] = []

    def initialize_options(self) -> None: ...

    def finalize_options(self) -> None: ...

    def run(self) -> None:
        folder = library.build_folder()
        library.build(folder, self.distribution.get_version(), "all")
        for made in (f"lib/{library.LIBRARY}", "bin/standalone"):
            if (folder / made).is_file():
                print(f"made {folder / made}")


class AnyPythonWheel(bdist_wheel):
    """The library knows nothing of Python: one wheel serves every Python of its platform."""

    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", f"linux_{toolchain.target_machine()}"


setup(
    ext_modules=[Extension("cuda_ext_example._library", sources=[])],
    cmdclass={"build_ext": CMakeBuild, "build_cpp": BuildCpp, "bdist_wheel": AnyPythonWheel},
)

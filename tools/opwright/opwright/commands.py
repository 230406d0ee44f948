"""The extension class and the build commands that a setup.py uses.

Environment:
  OPWRIGHT_CUDA          on, off or auto (the default): auto is on if a CUDA compiler is found
  OPWRIGHT_COMPILER      nvcc (the default) or clang, which then compiles everything
  OPWRIGHT_TARGET        the CPU to build for: x86_64 or aarch64 (default: this machine's)
  OPWRIGHT_CACHE         auto (the default: ccache or else sccache, if found), ccache, sccache or off
  OPWRIGHT_BUILD_FOLDER  the build folder (default: one in build/ for each CPU and compiler)
  CUDA_HOME              the CUDA toolkit (default: that of nvcc on PATH, or else /usr/local/cuda)
  CXX                    the C++ compiler
  TORCH_CUDA_ARCH_LIST   GPU targets: "8.0;9.0+PTX", "Hopper", "native" (default: ci/matrix.toml's;
                         in an sdist this machine's, or PTX if it has no GPU)
  MAX_JOBS               how many compilers run at once (default: as cores and free memory allow)
"""

import shutil
import sys
from pathlib import Path
from typing import ClassVar

from setuptools import Command, Extension

try:
    from setuptools.command.bdist_wheel import bdist_wheel as setuptools_bdist_wheel
except ImportError:
    sys.exit(
        "error: this Python's setuptools is older than 80, and with --no-build-isolation it must bring all that "
        "pyproject.toml's [build-system] asks for; run `pip install 'setuptools>=80' opwright torch`, or leave out "
        "--no-build-isolation"
    )
from setuptools.command.build_ext import build_ext as setuptools_build_ext

from opwright.build import library, toolchain
from opwright.build.project import SOURCES, Project
from opwright.build.runtime import copy_runtime


class OpExtension(Extension):
    """A library of ops in the package `name`, built from the folder `sources`.

    Every source in the folder goes into the sdist, because setuptools packs what an extension depends on.
    """

    def __init__(self, name: str, sources: str = SOURCES) -> None:
        files = (
            file
            for file in Path(sources).rglob("*")
            if file.is_file() and "/." not in f"/{file.relative_to(sources)}"
        )
        left = (".o", ".pyc", ".so")
        super().__init__(
            f"{name}.lib{name}",
            sources=[],
            depends=sorted(str(file) for file in files if file.suffix not in left),
        )
        self.package, self.folder = name, sources


def project_of(extension: OpExtension, version: str) -> Project:
    return Project(Path.cwd(), extension.package, version, extension.folder)


class build_ext(setuptools_build_ext):  # noqa: N801 - setuptools names commands so
    """Builds an OpExtension with CMake and puts its library and opwright's Python part into the package."""

    def get_ext_filename(self, fullname: str) -> str:
        extension = self.ext_map.get(fullname)
        if not isinstance(extension, OpExtension):
            return str(super().get_ext_filename(fullname))
        return str(Path(*fullname.split(".")[:-1]) / f"lib{extension.package}.so")

    def build_extension(self, ext: Extension) -> None:
        if not isinstance(ext, OpExtension):
            super().build_extension(ext)
            return
        built = library.build(project_of(ext, self.distribution.get_version()))
        destination = Path(self.get_ext_fullpath(ext.name))
        destination.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(built, destination)
        copy_runtime(destination.parent)

    def copy_extensions_to_source(self) -> None:
        """Puts both beside the package's sources for an editable install."""
        super().copy_extensions_to_source()
        build_py = self.get_finalized_command("build_py")
        for extension in self.extensions:
            if isinstance(extension, OpExtension):
                copy_runtime(Path(build_py.get_package_dir(extension.package)))


class build_cpp(Command):  # noqa: N801
    """Builds the library and the standalone program without a package: `python setup.py build_cpp`."""

    user_options: ClassVar[list[tuple[str, str | None, str]]] = []

    def initialize_options(self) -> None: ...

    def finalize_options(self) -> None: ...

    def run(self) -> None:
        for extension in self.distribution.ext_modules or ():
            if isinstance(extension, OpExtension):
                project = project_of(extension, self.distribution.get_version())
                made = library.build(project, "all")
                for file in (made, made.parents[1] / "bin/standalone"):
                    if file.is_file():
                        print(f"made {file}")


class bdist_wheel(setuptools_bdist_wheel):  # noqa: N801
    """Makes one wheel for every Python of its platform, because the library does not depend on Python."""

    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", f"linux_{toolchain.target_machine()}"

"""Builds csrc/ into a library on torch's stable ABI; it is used like torch.utils.cpp_extension.

from opwright import OpExtension, bdist_wheel, build_ext
from setuptools import setup

setup(
    ext_modules=[OpExtension("my_ext", "csrc")],
    cmdclass={"build_ext": build_ext, "bdist_wheel": bdist_wheel},
)
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["OpExtension", "bdist_wheel", "build_cpp", "build_ext"]

if TYPE_CHECKING:
    from opwright.commands import OpExtension, bdist_wheel, build_cpp, build_ext


def __getattr__(name: str) -> Any:  # only builds import setuptools
    if name in __all__:
        from opwright import commands

        return getattr(commands, name)
    raise AttributeError(f"module 'opwright' has no attribute {name!r}")

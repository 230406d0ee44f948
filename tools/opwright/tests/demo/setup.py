"""Builds the demo: an extension with one elementwise op and one kernel of its own."""

from opwright import OpExtension, bdist_wheel, build_cpp, build_ext
from setuptools import setup

setup(
    ext_modules=[OpExtension("demo_ext", "csrc")],
    cmdclass={"build_ext": build_ext, "build_cpp": build_cpp, "bdist_wheel": bdist_wheel},
)

"""Builds the extension: opwright compiles csrc/ and packs one wheel for every Python of a platform."""

from opwright import OpExtension, bdist_wheel, build_cpp, build_ext
from setuptools import setup

setup(
    ext_modules=[OpExtension("cuda_ext_example", "csrc")],
    cmdclass={"build_ext": build_ext, "build_cpp": build_cpp, "bdist_wheel": bdist_wheel},
)

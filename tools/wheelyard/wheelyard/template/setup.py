"""Builds the extension: opwright compiles csrc/ and packs one wheel for every Python of a platform."""

from opwright import OpExtension, bdist_wheel, build_ext
from setuptools import setup

setup(
    ext_modules=[OpExtension("my_ext", "csrc")],
    cmdclass={"build_ext": build_ext, "bdist_wheel": bdist_wheel},
)

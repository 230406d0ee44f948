"""Compiles one C file for the CPU that DEMO_TARGET names."""

import os
import subprocess
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

TARGET = os.environ.get("DEMO_TARGET", os.uname().machine)


class Compile(build_py):
    def run(self) -> None:
        super().run()
        compiler = f"{TARGET}-linux-gnu-gcc"
        library = Path(self.build_lib) / "demo_ext/libdemo.so"
        flags = ["-shared", "-fPIC", "-O2", "-s", "-Wl,-z,relro,-z,now"]
        subprocess.run([compiler, *flags, "-o", library, "demo_ext/demo.c"], check=True)


class Tag(bdist_wheel):
    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", f"linux_{TARGET}"


class Binary(Distribution):
    def has_ext_modules(self) -> bool:
        return True


setup(cmdclass={"build_py": Compile, "bdist_wheel": Tag}, distclass=Binary)

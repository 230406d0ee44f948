"""Packs wheelscope as a wheel: one static program that runs on every Linux of its CPU, with any Python.

Building needs CMake, Ninja, a C++23 compiler and the libraries that `make wheelscope` installs.
"""

import os
import platform
import subprocess
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel

HERE = Path(__file__).parent.resolve()
BUILD = Path(os.environ.get("WHEELSCOPE_BUILD") or HERE.parents[1] / "build/wheelscope")


def build_program() -> str:
    """The program's path, as setuptools wants it: relative to this file."""
    configure = ["cmake", "-S", str(HERE), "-B", str(BUILD), "-G", "Ninja", "--log-level=WARNING"]
    for command in (configure, ["cmake", "--build", str(BUILD), "--target", "wheelscope"]):
        subprocess.run(command, check=True)
    return os.path.relpath(BUILD / "wheelscope", HERE)


def write_manuals() -> list[tuple[str, list[str]]]:
    """The manual page and completions, in the words of the program, where systems look for them."""
    files = {
        "share/man/man1/wheelscope.1": ["man"],
        "share/bash-completion/completions/wheelscope": ["completions", "bash"],
        "share/zsh/site-functions/_wheelscope": ["completions", "zsh"],
        "share/fish/vendor_completions.d/wheelscope.fish": ["completions", "fish"],
    }
    placed = []
    for place, words in files.items():
        path = BUILD / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(subprocess.check_output([BUILD / "wheelscope", *words]))
        placed.append((str(Path(place).parent), [os.path.relpath(path, HERE)]))
    return placed


class StaticProgramWheel(bdist_wheel):
    """It needs neither Python nor a C library of the system it runs on."""

    def get_tag(self) -> tuple[str, str, str]:
        machine = platform.machine()
        return "py3", "none", f"manylinux_2_17_{machine}.musllinux_1_1_{machine}"


class Binary(Distribution):
    def has_ext_modules(self) -> bool:
        return True


setup(
    data_files=[("bin", [build_program()]), *write_manuals()],
    cmdclass={"bdist_wheel": StaticProgramWheel},
    distclass=Binary,
)

"""Runs Pythons of Debian's suites, each in a container, to ask questions that only a real one can
answer.

debootstrap makes the images, without a registry. Packages are installed from outside, into a folder
that becomes the site-packages of the container's environment, so nothing inside needs a network.
"""

import functools
import importlib
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from validation.program import ROOT, WHEELSCOPE

PLACE = ROOT / "build/containers"
PREFIX = "/opt/env"
NEWEST_FOR_UV = 40


@dataclass(frozen=True)
class Suite:
    """A Debian suite: its Python, and its C library."""

    name: str
    python: str
    glibc: str

    @property
    def site(self) -> str:
        """The folder of the environment's packages in the container."""
        return f"{PREFIX}/lib/python{self.python}/site-packages"

    @property
    def platform(self) -> str:
        """The platform that uv finds wheels for; it knows none with a newer C library."""
        minor = min(int(self.glibc.removeprefix("2.")), NEWEST_FOR_UV)
        return f"{platform.machine()}-manylinux_2_{minor}"


SUITES = {
    suite.name: suite
    for suite in (
        Suite("bullseye", "3.9", "2.31"),
        Suite("bookworm", "3.11", "2.36"),
        Suite("trixie", "3.13", "2.41"),
    )
}


def say(text: str) -> None:
    print(text, file=sys.stderr)


def wheelyard(module: str) -> Any:
    """Imports a module of the installed wheelyard, which is needed only to make containers."""
    try:
        return importlib.import_module(f"wheelyard.{module}")
    except ModuleNotFoundError:
        sys.exit(
            f"error: wheelyard makes the containers; install it: {sys.executable} -m pip install wheelyard"
        )


class Here:
    """This machine, with the facts that making an image needs."""

    @functools.cached_property
    def _engine(self) -> Any:
        PLACE.mkdir(parents=True, exist_ok=True)
        return wheelyard("core.engine").ready(PLACE, say)

    def engine(self) -> Any:
        return self._engine

    def say(self, text: str) -> None:
        say(text)


HERE = Here()


@functools.cache
def image(suite: Suite) -> str:
    """Returns an image of the suite with its Python, made once."""
    PLACE.mkdir(parents=True, exist_ok=True)
    recipe = {
        "target": "python",
        "bases": {"PYTHON_IMAGE": suite.name},
        "arguments": {"PYTHON": suite.python},
        "tag": f"wheelscope-python:{suite.name}",
    }
    workspace = wheelyard("core.workspace").Workspace(
        inputs={},
        folder=PLACE / suite.name,
        log=PLACE / f"{suite.name}.log",
        made_by_others=PLACE,
        project=ROOT,
        lasting=PLACE,
        machine=HERE,
    )
    return str(wheelyard("tools.images").ensure(recipe, workspace))


def run(
    suite: Suite,
    site: Path,
    words: Sequence[str],
    mounts: Mapping[Path, str] | None = None,
    variables: Mapping[str, str] | None = None,
    limit: float = 600,
) -> subprocess.CompletedProcess[str]:
    """Runs a command in the environment whose packages are in `site`; `python` is its Python."""
    mounted = {site: suite.site, WHEELSCOPE: "/usr/local/bin/wheelscope", **(mounts or {})}
    options = [f"--volume={path.resolve()}:{place}" for path, place in mounted.items()]
    options += [f"--env={name}={value}" for name, value in (variables or {}).items()]
    make = f"python{suite.python} -m venv --without-pip {PREFIX} && PATH={PREFIX}/bin:$PATH exec"
    return subprocess.run(
        [
            HERE.engine().command, "run", "--rm", "--init", "--network=none", *options,
            image(suite), "sh", "-c", f'{make} "$@"', "sh", *words,
        ],
        capture_output=True, text=True, timeout=limit,
    )  # fmt: skip


def install(suite: Suite, site: Path, words: Sequence[str]) -> None:
    """Lets uv install packages into a folder, for the suite's Python."""
    kind = [f"--python-version={suite.python}", f"--python-platform={suite.platform}"]
    uv(["pip", "install", "--only-binary=:all:", *kind, f"--target={site}", *words])


def uninstall(site: Path, words: Sequence[str]) -> None:
    uv(["pip", "uninstall", f"--target={site}", *words])


def uv(words: Sequence[str]) -> None:
    program = Path(sys.executable).with_name("uv")
    done = subprocess.run([program, "--quiet", *words], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"error: uv {' '.join(words)}\n{done.stderr}")

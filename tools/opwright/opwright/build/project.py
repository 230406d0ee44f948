"""The extension to build: its folder, name, version and sources."""

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SOURCES = "csrc"


class BuildError(SystemExit):
    """An error that stops the build; its message says what to do."""

    def __init__(self, message: str) -> None:
        super().__init__(f"error: {message}")


@dataclass(frozen=True)
class Project:
    """An extension's project. `root` holds setup.py and the package `name`, which gets the library."""

    root: Path
    name: str
    version: str
    sources: str = SOURCES

    @property
    def library(self) -> str:
        return f"lib{self.name}.so"

    @property
    def package(self) -> Path:
        return self.root / self.name

    @property
    def matrix(self) -> Path:
        """The release's matrix, which a clone may have and an sdist does not."""
        return self.root / "ci/matrix.toml"

    def build_folder(self, default: str) -> Path:
        return self.root / (os.environ.get("OPWRIGHT_BUILD_FOLDER") or default)


def read_toml(file: Path) -> dict[str, Any]:
    return tomllib.loads(file.read_text())


def project_here() -> Project:
    """Returns the project in the current folder, as its pyproject.toml names it."""
    file = Path.cwd() / "pyproject.toml"
    facts = read_toml(file).get("project", {}) if file.is_file() else {}
    if "name" not in facts or "version" not in facts:
        raise BuildError(
            f"{file} does not name a project and its version; run this where the extension's setup.py lies"
        )
    return Project(file.parent, re.sub(r"[-_.]+", "_", facts["name"]), facts["version"])

"""Describes the project to be released: its folder, names, version, files and commit."""

import os
import re
import shlex
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from wheelyard.config.matrix import FILE as CONFIGURATION
from wheelyard.config.schema import not_toml
from wheelyard.core import git
from wheelyard.core.digest import of_source
from wheelyard.problem import Problem


@dataclass(frozen=True)
class Project:
    root: Path
    name: str
    import_name: str
    version: str  # empty if only a build can tell
    requires: tuple[str, ...] = ()  # requirements besides torch; empty if only a build can tell
    build_requires: tuple[str, ...] = ()  # requirements of its build besides torch
    folder: str = ""  # the one below the root that has its pyproject.toml or setup.py

    @property
    def normalised(self) -> str:
        """The name as it stands at the start of the file names of its wheels."""
        return canonicalize_name(self.name).replace("-", "_")

    @property
    def release_folder(self) -> Path:
        """The folder of a release: record, logs, report, index. The variable RELEASE_FOLDER names another."""
        return Path(os.environ.get("RELEASE_FOLDER") or self.root / "build/release").resolve()

    @property
    def wheelhouse(self) -> Path:
        """The folder that holds the distributions of the last release, and nothing else."""
        own = os.environ.get("RELEASE_FOLDER")
        return (self.release_folder if own else self.root) / "wheelhouse"

    def files(self, *folders: str) -> dict[str, str]:
        """Returns the sha256 of each file below the folders, or of all files that git would take."""
        return {path: of_source(self.root / path) for path in self._listed(*folders)}

    def _listed(self, *folders: str) -> list[str]:
        names = _tracked(self.root, *folders)
        if names is None:
            raise Problem(why_no_commit(self.root))
        found: list[str] = []
        for name in names:
            path = self.root / name
            if path.is_symlink() and path.is_dir() and not path.resolve().is_relative_to(self.root):
                # A folder of the repository outside the project, to which the project has a link.
                top = git.ask(self.root, "rev-parse", "--show-toplevel") or self.root
                if not path.resolve().is_relative_to(Path(top).resolve()):
                    raise Problem(
                        f"{name} is a link to {path.readlink()}, which is outside this repository, so no commit says "
                        "what is released; commit the files themselves, or make them a submodule"
                    )
                found += [f"{name}/{inner}" for inner in _tracked(path.resolve()) or []]
            elif path.is_file() or path.is_symlink():
                found.append(name)
        made = tuple(f"{path}/" for path in self._made)  # the project may not have ignored them
        return sorted(name for name in found if not name.startswith(made))

    @property
    def described(self) -> str:
        """git's description of HEAD: versions that are made from tags depend on it."""
        return git.ask(self.root, "describe", "--tags", "--long", "--always") or ""

    @property
    def commit(self) -> str:
        """The commit that is checked out; a trailing + marks changes since; empty outside git.

        There are no changes if git makes exactly the commit's tree from the files as they are. It does so with a
        separate index: the user's own may be told to overlook files (assume-unchanged, skip-worktree), and so may `git
        status` by settings.
        """
        head = git.ask(self.root, "rev-parse", "HEAD") or ""
        if not head:
            return ""
        everything = ["--", ":/", *self._nothing_made]
        with tempfile.TemporaryDirectory() as folder:
            where = ["rev-parse", "--path-format=absolute", "--git-path", "objects"]
            (Path(folder) / "objects").mkdir()
            own = {
                "GIT_INDEX_FILE": f"{folder}/index",
                "GIT_OBJECT_DIRECTORY": f"{folder}/objects",
                "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(git.ask(self.root, *where)),
            }
            # What is left out below stays as it is in HEAD.
            git.ask(self.root, "read-tree", "HEAD", more=own)
            git.ask(self.root, "-c", "core.fileMode=true", "add", "--all", *everything, more=own)
            now = git.ask(self.root, "write-tree", more=own)
        then = git.ask(self.root, "rev-parse", "HEAD^{tree}")
        words = ["status", "--porcelain", "--ignore-submodules=none"]
        inside = git.ask(self.root, *words, *everything)
        return head if now == then and not inside else f"{head}+"

    @property
    def changes(self) -> list[str]:
        """The files that differ from the commit or are missing from it, without the files that a release makes."""
        words = ["status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--", "."]
        said = git.ask(self.root, *words, *self._nothing_made) or ""
        return [line[3:] for line in said.split("\0") if line]

    @property
    def _made(self) -> list[Path]:
        """The folders below the root that a release fills."""
        folders = (self.release_folder, self.wheelhouse)
        return [f.relative_to(self.root) for f in folders if f.is_relative_to(self.root)]

    @property
    def _nothing_made(self) -> list[str]:
        """Arguments that make git leave out those folders, which a project may have forgotten to ignore."""
        return [f":(exclude){folder}" for folder in self._made]

    @property
    def version_tag(self) -> str:
        """The version tag on HEAD, or an empty string."""
        tags = git.ask(self.root, "tag", "--points-at", "HEAD", "--list", "v*") or ""
        return tags.split("\n")[0]


def find(start: Path | None = None) -> Path:
    """Returns the project's root: the nearest folder upwards that has a ci/matrix.toml."""
    here = (start or Path.cwd()).resolve()
    for folder in (here, *here.parents):
        if (folder / CONFIGURATION).is_file():
            return folder
    raise Problem(
        f"there is no {CONFIGURATION} in {here} or above it; `wheelyard init` writes one for your project"
    )


def load(root: Path, name: str = "", import_name: str = "", folder: str = "") -> Project:
    """Returns the project in a folder of `root`. The names given, from its matrix, take precedence over
    pyproject.toml's."""
    place = root / folder
    if not place.is_dir():
        raise Problem(
            f"{CONFIGURATION} says project.folder = {folder!r}, which is not a folder in {root}"
        )
    table = metadata(place)
    name = name or table.get("name", "")
    if not name:
        raise Problem(
            f"{place / 'pyproject.toml'} has no [project] name; say it in {CONFIGURATION}:\n"
            '  [project]\n  name = "your-distribution"'
        )
    default = re.sub(r"[-_.]+", "_", name)
    needs = beside_torch(table.get("dependencies", []), place)
    builds = beside_torch(pyproject(place).get("build-system", {}).get("requires", []), place)
    version = table.get("version", "")
    return Project(root, name, import_name or default, version, needs, builds, folder)


def requirement(text: str, place: Path) -> Requirement:
    """Parses a requirement of the project in `place`; raises a Problem if it is not valid."""
    try:
        return Requirement(text)
    except InvalidRequirement as error:
        raise Problem(
            f"{place} has the requirement `{text}`, which pip cannot read: {error}"
        ) from None


def beside_torch(requirements: list[str], place: Path) -> tuple[str, ...]:
    """Returns the requirements without torch, which every image has in the version of its cell."""
    return tuple(
        t for t in requirements if canonicalize_name(requirement(t, place).name) != "torch"
    )


def metadata(root: Path) -> dict[str, Any]:
    """Returns pyproject.toml's [project] table; empty if there is none."""
    return dict(pyproject(root).get("project", {}))


def pyproject(root: Path) -> dict[str, Any]:
    """Returns the tables of pyproject.toml; empty if there is no such file."""
    file = root / "pyproject.toml"
    try:
        return tomllib.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    except (ValueError, RecursionError) as error:
        raise Problem(f"{file}{not_toml(error)}") from None


def why_no_commit(folder: Path) -> str:
    """Returns why git reads no commit in a folder, and how to change that."""
    said = os.fsdecode(git.run(folder, "status").stderr)
    if said.startswith("git is missing"):
        return f"{said}: an sdist is made from the files that git tracks"
    if "dubious ownership" in said:
        return (
            f"{folder} belongs to another user, so git does not read it; if you trust its files: "
            f"git config --global --add safe.directory {shlex.quote(str(folder))}"
        )
    if not said:
        return f"the repository of {folder} has no commit yet; `git commit` makes one"
    return f"{folder} is not a git repository; `git init` makes it one"


def _tracked(folder: Path, *below: str) -> list[str] | None:
    """Returns the files below a folder that git tracks or would add; None if git fails."""
    found: list[str] = []
    for kind in (["--recurse-submodules"], ["--others", "--exclude-standard"]):
        listed = git.ask(folder, "ls-files", "-z", *kind, "--", *below)
        if listed is None:
            return None
        found += [name for name in listed.split("\0") if name]
    return sorted(set(found))

"""Makes this template a project of another name: `make new NAME=my-ext DEST=../my_ext`.

Every tracked file is copied. Where a name of this project stands in it or in its path, the new one's stands there: the
distribution, the package and its ops, the C++ namespace, the prefix of macros and environment variables, the
repository and the licence's holder. What is true of the template alone stays behind: its evidence, its changes, this
program, and what stands between marks that say `only here`. The new one is formatted, as names of another length wrap
elsewhere, and is a git repository with one commit.
"""

import argparse
import contextlib
import keyword
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NAME = re.compile(r"[a-z]([a-z0-9]|[-_.](?=[a-z0-9]))*")
STAY = (
    "docs/evidence/",  # about bytes that the new project never makes
    "scripts/new_project.py",  # the new project is no template
    "tests/scripts/test_new_project",
)
ONLY_HERE = re.compile(r"(?:<!--|#) only here.*?/only here(?: -->)?\n+", re.DOTALL)
TAKEN = {"torch", "build", "wheelyard", "wheelscope"}
CHANGELOG = """# Changelog

The format is [Keep a Changelog](https://keepachangelog.com/en/1.1.0/); versions follow
[Semantic Versioning](https://semver.org/).

## [Unreleased]

### Added

- The project, from a template.
"""


class Refused(Exception):
    """What is wrong with the request, and what to type instead."""


@dataclass(frozen=True)
class Names:
    """All the names that a project has."""

    distribution: str  # my-ext
    repository: str  # https://github.com/owner/my-ext
    holder: str  # of the licence

    @property
    def package(self) -> str:
        """What is imported, the ops' namespace and the library: my_ext."""
        return re.sub(r"[-.]", "_", self.distribution)

    @property
    def slug(self) -> str:
        """owner/my-ext"""
        return "/".join(self.repository.rstrip("/").split("/")[-2:])

    def spellings(self) -> list[str]:
        """Each way in which a name stands in a file, those that contain others first."""
        short = self.package.removesuffix("_example")
        return [
            self.repository,
            self.slug,
            self.holder,
            self.holder[:1].upper() + self.holder[1:],
            self.package,
            self.distribution,
            short.upper(),  # macros, environment variables
            short,  # C++'s namespace
        ]


OURS = Names(
    "cuda-ext-example",
    "https://github.com/cuda-ext-example/cuda_ext_example",
    "the cuda_ext_example authors",
)


def replacements(new: Names) -> dict[str, str]:
    theirs = [
        new.repository,
        new.slug,
        new.holder,
        new.holder,
        new.package,
        new.distribution,
        new.package.upper(),
        new.package,
    ]
    return dict(zip(OURS.spellings(), theirs, strict=True))


def renamed(text: str, words: dict[str, str]) -> str:
    pattern = "|".join(re.escape(word) for word in words)  # the first that fits
    return re.sub(pattern, lambda found: words[found[0]], text)


def check(names: Names, folder: Path) -> None:
    if not NAME.fullmatch(names.distribution):
        raise Refused(
            f"`{names.distribution}` is no name for a package: take small letters, digits and dashes, such as my-ext"
        )
    if keyword.iskeyword(names.package) or names.package in TAKEN | sys.stdlib_module_names:
        raise Refused(f"`import {names.package}` would mean something else; take another name")
    if any(file.startswith(f"{names.package}/") for file in tracked()):
        raise Refused(f"the project has a folder {names.package}/ already; take another name")
    if not names.repository.startswith("https://"):
        raise Refused(
            "say where the project will live: REPOSITORY=https://github.com/you/"
            f"{names.distribution}, or set your name there once: git config --global github.user you"
        )
    if not names.holder:
        raise Refused('say who holds the licence: HOLDER="Ada Lovelace"')
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise Refused(f"{folder} is there already, and is not empty; nothing was written")
    if ROOT in folder.resolve().parents:
        raise Refused(f"{folder} lies inside this project; take a folder beside it")
    if not answer("var", "GIT_COMMITTER_IDENT"):
        raise Refused(
            "git does not know whose name to put on the first commit:\n"
            '  git config --global user.name "Ada Lovelace" && git config --global user.email ada@example.org'
        )


def tracked() -> list[str]:
    return git("ls-files", "-z").split("\0")[:-1]


def copy(names: Names, folder: Path) -> None:
    words = replacements(names)
    for file in tracked():
        if file.startswith(STAY):
            continue
        source, target = ROOT / file, folder / renamed(file, words)
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_symlink():
            target.symlink_to(renamed(str(source.readlink()), words))
            continue
        content = source.read_bytes()
        with contextlib.suppress(UnicodeDecodeError):  # a picture
            content = renamed(ONLY_HERE.sub("", content.decode()), words).encode()
        target.write_bytes(content)
        target.chmod(source.stat().st_mode)
    (folder / "CHANGELOG.md").write_text(CHANGELOG)


def format_sources(folder: Path) -> None:
    ruff = str(Path(sys.executable).with_name("ruff"))
    run(folder, ruff, "check", "--quiet", "--select=I", "--fix", ".")
    run(folder, ruff, "format", "--quiet", ".")
    sources = [
        str(file)
        for kind in ("cpp", "h", "cu", "cuh")
        for file in folder.rglob(f"*.{kind}")
        if "tests" not in file.relative_to(folder).parts
    ]
    run(folder, "clang-format", "-i", *sources)


def git(*arguments: str, folder: Path = ROOT) -> str:
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def answer(*arguments: str) -> str:
    """What git says, or nothing where it has nothing to say."""
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip()


def run(folder: Path, *command: str) -> None:
    subprocess.run(command, cwd=folder, check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--repository", default="")
    parser.add_argument("--holder", default="")
    arguments = parser.parse_args()
    user = answer("config", "github.user")
    repository = arguments.repository or (
        f"https://github.com/{user}/{arguments.name}" if user else ""
    )
    names = Names(arguments.name, repository, arguments.holder or answer("config", "user.name"))
    try:
        check(names, arguments.folder)
    except Refused as refused:
        sys.exit(f"error: {refused}")
    copy(names, arguments.folder)
    format_sources(arguments.folder)
    git("init", "--quiet", "--initial-branch=main", folder=arguments.folder)
    git("add", "--all", folder=arguments.folder)
    git("commit", "--quiet", f"--message=Start {names.distribution}", folder=arguments.folder)
    print(
        f"{arguments.folder}: {names.distribution}, imported as {names.package}, {names.repository}, held by "
        f"{names.holder}\nnext: cd {arguments.folder} && make test"
    )


if __name__ == "__main__":
    main()

"""Runs `wheelyard new`, which starts a project from the template, and `wheelyard update`, which merges a newer
template.

The template is itself a working project, `my-ext`; a new project is a copy of it under another name. git does the
merging: the template's files are a commit of their own, an update is another commit on top of it, and `git merge` joins
that with whatever the project has become.
"""

import hashlib
import os
import re
import shlex
import shutil
import tempfile
import tomllib
from pathlib import Path

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from wheelyard import __version__, project_name
from wheelyard.core import git
from wheelyard.problem import Problem
from wheelyard.tools import images

TEMPLATE = Path(__file__).with_name("template")
MARKER = "ci/template.toml"
TOOLS = "ci/tools.txt"
# Characters in a project's path with which CMake, Ninja, make or a virtual environment fails.
UNUSABLE = ":;\"'$\\[<|\n"
WHEELS = "wheels"  # beside TOOLS: pip resolves a path in that file from the file's own folder
# pip expands a variable such as ${TOKEN}. No other character means something to TOML, pip or a shell.
ADDRESS = r"([\w:/.~%?=@+,-]|\$\{[A-Z0-9_]+\})*"
Files = dict[str, bytes]


def new(name: str, folder: Path, tools: str = "") -> list[str]:
    """Writes a project into `folder`, which must be missing or empty, and returns lines that say what to type next.

    `tools` is a folder of wheels or the address of an index that has opwright, wheelyard and wheelscope; without it,
    they come from PyPI. Wheels from a folder are copied into the project, so that every clone of it has them.
    """
    project_name.check(name)
    _check_path(folder)
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise Problem(
                f"{folder} is not empty; name an empty folder, or one that does not exist"
            )
    except OSError as error:
        raise _unusable(folder, error) from None
    in_index = not tools or "://" in tools
    if in_index and not re.fullmatch(ADDRESS, tools):
        raise Problem(f"'{tools}' is not an index's address, such as https://example.org/simple")
    files = rendered(name, tools if in_index else WHEELS)
    wheels = [] if in_index else _tool_wheels(Path(tools), files[TOOLS].decode())
    existed = folder.exists()
    try:
        _write(files, folder)
        git.call(folder, "init", "--quiet", "--initial-branch=main")
        _commit_all(folder, _subject())
        if wheels:  # in another commit: `update` merges from one with the template's files alone
            place = (folder / TOOLS).with_name(WHEELS)
            place.mkdir()
            for wheel in wheels:
                shutil.copyfile(wheel, place / wheel.name)
            _commit_all(folder, f"Add the tools' wheels, as {TOOLS} takes them from here")
    except BaseException as error:  # half a project would be in the way of the next attempt
        for made in [*folder.iterdir()] if folder.is_dir() else []:
            shutil.rmtree(made) if made.is_dir() else made.unlink()
        if folder.is_dir() and not existed:
            folder.rmdir()
        if isinstance(error, OSError):
            raise _unusable(folder, error) from None
        raise
    return [
        f"{folder}: {len(files) + len(wheels)} files, committed",
        *(f"{wheel.name} is copied into it" for wheel in wheels),
        f"next: `cd {shlex.quote(str(folder))} && make check` builds it and runs its tests; README.md has the rest",
    ]


def update(folder: Path) -> str:
    """Merges the installed wheelyard's template into the project that `folder` is in; git shows conflicts as usual."""
    root = _root(folder)
    if git.call(root, "status", "--porcelain"):
        raise Problem("there are changes that are not committed; commit or stash them first")
    if git.ask(root, "rev-parse", "--quiet", "--verify", "MERGE_HEAD"):
        raise Problem(
            "another merge has begun; `git commit` ends it, `git merge --abort` undoes it"
        )
    base = _template_commit(root)
    facts = _facts(root, base)
    made_by = facts["wheelyard"]
    if Version(made_by) > Version(__version__):
        raise Problem(
            f"the project has the template of wheelyard {made_by}, and this wheelyard is older: {__version__}; install "
            f"wheelyard {made_by} or later"
        )
    files = rendered(facts["name"], facts["tools"])
    if files[MARKER] == (root / MARKER).read_bytes():
        return f"the project has the template of wheelyard {made_by} already"
    with tempfile.TemporaryDirectory() as scratch:
        # A separate worktree leaves the project's files as they are until git merges.
        tree = Path(scratch) / "template"
        git.call(root, "worktree", "add", "--quiet", "--detach", str(tree), base)
        try:
            for old in git.call(tree, "ls-files", "-z").split("\0")[:-1]:
                (tree / old).unlink()
            _write(files, tree)
            _commit_all(tree, _subject())
            commit = git.call(tree, "rev-parse", "HEAD")
        finally:
            git.call(root, "worktree", "remove", "--force", str(tree))
    _merge(root, commit)
    return (
        f"the project has the template of wheelyard {__version__} now; `git show` shows the changes"
    )


def _root(folder: Path) -> Path:
    """Returns the project that the folder is in."""
    for parent in (folder, *folder.parents):
        if (parent / MARKER).is_file():
            return parent
    raise Problem(f"{folder} has no {MARKER}: `wheelyard new` did not write this project")


def _merge(root: Path, commit: str) -> None:
    """Merges; a conflict is left for the user, and a merge that git refuses leaves nothing behind."""
    words = ["merge", "--no-ff", "--message", f"Merge the template of wheelyard {__version__}"]
    done = git.run(root, *_author(root), *words, commit)
    if done.returncode == 0:
        return
    said = "\n".join(os.fsdecode(text).strip() for text in (done.stdout, done.stderr)).strip()
    if git.call(root, "ls-files", "--unmerged"):
        raise Problem(
            f"{said}\nresolve the conflicts, then `git commit`; `git merge --abort` undoes the merge"
        )
    if git.ask(root, "rev-parse", "--quiet", "--verify", "MERGE_HEAD"):
        git.call(root, "merge", "--abort")
    raise Problem(f"git refuses to merge, and the project is as it was; git says:\n{said}")


def rendered(name: str, tools: str) -> Files:
    """Returns the template's files for a project of that name, with the marker that describes them."""
    dashed, (option, setting) = canonicalize_name(name), _places(tools)
    names = {
        "my-ext": dashed,
        "my_ext": dashed.replace("-", "_"),
        "--find-links TOOLS\n": option,
        "TOOLS_FOR_PIP ": setting,
        "UV_WITH_HASHES": " ".join(
            (images.FOLDER / "uv.lock").read_text().replace("\\\n", "").split()
        ),
    }
    files = {
        _replaced(file.relative_to(TEMPLATE).as_posix(), names): _replaced(
            file.read_text(), names
        ).encode()
        for file in TEMPLATE.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    facts = {"name": name, "tools": tools, "wheelyard": __version__}
    lines = [
        f'{key} = "{value}"' for key, value in [*facts.items(), ("digest", _digest(files, facts))]
    ]
    head = "# What `wheelyard new` wrote this project with; `wheelyard update` reads it. Leave it as it is."
    files[MARKER] = "\n".join([head, *lines, ""]).encode()
    return files


def _check_path(folder: Path) -> None:
    """Refuses a path in which the project could not be built."""
    found = [character for character in UNUSABLE if character in str(folder.resolve())]
    if found:
        raise Problem(
            f"the project could not be built in {folder.resolve()}, because its path has "
            f"{' and '.join(map(repr, found))}; give another folder"
        )


def _unusable(folder: Path, error: OSError) -> Problem:
    return Problem(f"{error.filename or folder}: {error.strerror}; give another folder")


def _tool_wheels(folder: Path, requirements: str) -> list[Path]:
    """Returns the wheels in `folder` of the versions that the project requires, for every platform that has one."""
    if not folder.is_dir():
        raise Problem(f"{folder} is neither a folder nor an index's address, such as https://...")
    found = []
    for tool, version in re.findall(r"^(opwright|wheelyard|wheelscope)==(.+)$", requirements, re.M):
        wheels = sorted(folder.glob(f"{tool}-{version}-*.whl"))
        if not wheels:
            raise Problem(
                f"{folder} has no wheel of {tool} {version}, which the project is built with; put it there, or name "
                "another folder with --tools"
            )
        found += wheels
    return found


def _commit_all(folder: Path, subject: str) -> None:
    """Commits every file as it is, whatever the user's own settings ignore, check, sign or rewrite."""
    git.call(folder, "add", "--all", "--force")
    words = ["commit", "--quiet", "--no-gpg-sign", "--message", subject]
    git.call(folder, "-c", "core.hooksPath=/dev/null", *_author(folder), *words)


def _places(tools: str) -> tuple[str, str]:
    """Returns the line of ci/tools.txt that says where the tools come from, and the setting with which pip finds
    opwright for an isolated build, which does not read that file; both are empty for PyPI."""
    if not tools:
        return "", ""
    if "://" in tools:
        return f"--extra-index-url {tools}\n", f"PIP_EXTRA_INDEX_URL={tools} "
    return f"--find-links {tools}\n", f"PIP_FIND_LINKS=ci/{tools} "


def _replaced(text: str, names: dict[str, str]) -> str:
    for old, new_name in names.items():
        text = text.replace(old, new_name)
    return text


def _digest(files: Files, facts: dict[str, str]) -> str:
    """Returns a digest that identifies the files as the template wrote them, and what the marker says of them."""
    total = hashlib.sha256()
    for key in ("name", "tools", "wheelyard"):
        total.update(f"{key}\0{facts[key]}\n".encode())
    for path, content in sorted(files.items()):
        total.update(f"{path}\0{hashlib.sha256(content).hexdigest()}\n".encode())
    return total.hexdigest()


def _template_commit(root: Path) -> str:
    """Returns the newest commit whose files are exactly those of a template."""
    for commit in git.call(root, "log", "--format=%H", "--", MARKER).split():
        names = git.call(root, "ls-tree", "-r", "-z", "--name-only", commit).split("\0")[:-1]
        shown = {n: git.run(root, "show", f"{commit}:{n}").stdout for n in names if n != MARKER}
        facts = _facts_in(git.run(root, "show", f"{commit}:{MARKER}").stdout)
        if facts and _digest(shown, facts) == facts["digest"]:
            return commit
    raise Problem(
        "no commit of this repository has only the template's files, so there is nothing to merge from (a squashed or "
        "shallow history loses it); run `wheelyard new` in another folder and compare"
    )


def _facts(root: Path, base: str) -> dict[str, str]:
    """Returns what the marker says, if nobody has edited it since the template was merged."""
    said = git.run(root, "show", f"{base}:{MARKER}").stdout
    facts = _facts_in(said)
    if not facts or said != (root / MARKER).read_bytes():
        raise Problem(
            f"{MARKER} was edited, and an update reads from it what the project was made with; "
            f"`git checkout {base[:12]} {MARKER}` brings it back"
        )
    return facts


def _facts_in(marker: bytes) -> dict[str, str] | None:
    """Returns the facts in a marker, or None if one of them is missing or is not what a template writes."""
    try:
        facts = tomllib.loads(marker.decode())
        Version(facts["wheelyard"])
    except (ValueError, KeyError, TypeError, InvalidVersion):
        return None
    is_whole = all(isinstance(facts.get(key), str) for key in ("name", "tools", "digest"))
    return facts if is_whole else None


def _write(files: Files, folder: Path) -> None:
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)


def _subject() -> str:
    return f"Start from the template of wheelyard {__version__}"


def _author(folder: Path) -> list[str]:
    """Returns options for git if it has not been given a name yet, as in a container."""
    options = []
    for key, value in {"user.name": "wheelyard", "user.email": "wheelyard@localhost"}.items():
        if not git.ask(folder, "config", key):
            options += ["-c", f"{key}={value}"]
    return options

"""Runs `wheelyard new`, which starts a project from the template, and `wheelyard update`, which merges a newer
template.

The template is itself a working project, `my-ext`; a new project is a copy of it under another name. git does the
merging: the template's files are a commit of their own, an update is another commit on top of it, and `git merge` joins
that with whatever the project has become.
"""

import hashlib
import keyword
import re
import shlex
import shutil
import sys
import tempfile
import tomllib
from pathlib import Path

from packaging.utils import canonicalize_name

from wheelyard import __version__
from wheelyard.core import git
from wheelyard.problem import Problem
from wheelyard.tools import images

TEMPLATE = Path(__file__).with_name("template")
MARKER = "ci/template.toml"
TOOLS = "ci/tools.txt"
WHEELS = "wheels"  # beside TOOLS: pip resolves a path in that file from the file's own folder
NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*([._-][A-Za-z0-9]+)*")
# Names taken by a project's folders, packages that it needs, torch's own ops, and targets of its build.
TAKEN = {
    *("build", "ci", "csrc", "dist", "setup", "tests", "wheelhouse"),
    *("expecttest", "numpy", "nvidia", "opwright", "packaging", "pip", "pytest", "setuptools"),
    *("sympy", "torch", "triton", "wheel", "wheelscope", "wheelyard"),
    *("aten", "c10d", "inductor", "prim", "prims", "profiler", "quantized"),
    *("all", "clean", "cuda_host", "cuda_kernels", "cuda_runtime", "help", "install", "kernels"),
    *("libtorch", "package", "standalone", "test"),
}
Files = dict[str, bytes]


def new(name: str, folder: Path, tools: str = "") -> list[str]:
    """Writes a project into `folder`, which must be missing or empty, and returns lines that say what to type next.

    `tools` is a folder of wheels or the address of an index that has opwright, wheelyard and wheelscope; without it,
    they come from PyPI. Wheels from a folder are copied into the project, so that every clone of it has them.
    """
    if not NAME.fullmatch(name):
        raise Problem(
            f"'{name}' is not a valid name for a project; use letters, digits and dashes, as in my-ext"
        )
    module = canonicalize_name(name).replace("-", "_")
    if keyword.iskeyword(module) or module in sys.stdlib_module_names or module in TAKEN:
        raise Problem(
            f"a package named {module} would be confused with something else; choose another name"
        )
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise Problem(
                f"{folder} is not empty; name an empty folder, or one that does not exist"
            )
    except OSError as error:
        raise _unusable(folder, error) from None
    in_index = not tools or "://" in tools
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


def update(root: Path) -> str:
    """Merges the installed wheelyard's template into the project; git shows conflicts as usual."""
    marker = root / MARKER
    if not marker.is_file():
        raise Problem(f"{root} has no {MARKER}: `wheelyard new` did not write this project")
    facts = tomllib.loads(marker.read_text())
    if git.call(root, "status", "--porcelain"):
        raise Problem("there are changes that are not committed; commit or stash them first")
    files = rendered(facts["name"], facts["tools"])
    if files[MARKER] == marker.read_bytes():
        return f"the project has the template of wheelyard {facts['wheelyard']} already"
    base = _template_commit(root, facts["digest"])
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
    merge = ["merge", "--no-ff", "--message", f"Merge the template of wheelyard {__version__}"]
    done = git.run(root, *_author(root), *merge, commit)
    if done.returncode:
        raise Problem(
            f"{done.stdout.decode().strip()}\nresolve the conflicts, then `git commit`; `git merge --abort` undoes the "
            "merge"
        )
    return (
        f"the project has the template of wheelyard {__version__} now; `git show` shows the changes"
    )


def rendered(name: str, tools: str) -> Files:
    """Returns the template's files for a project of that name, with the marker that describes them."""
    dashed = canonicalize_name(name)
    names = {
        "my-ext": dashed,
        "my_ext": dashed.replace("-", "_"),
        "--find-links TOOLS\n": _option(tools),
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
    facts = {"name": name, "tools": tools, "wheelyard": __version__, "digest": _digest(files)}
    lines = [f'{key} = "{value}"' for key, value in facts.items()]
    head = "# What `wheelyard new` wrote this project with; `wheelyard update` reads it. Leave it as it is."
    files[MARKER] = "\n".join([head, *lines, ""]).encode()
    return files


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


def _option(tools: str) -> str:
    """Returns the line of ci/tools.txt that says where the tools come from; empty for PyPI."""
    if not tools:
        return ""
    return f"--extra-index-url {tools}\n" if "://" in tools else f"--find-links {tools}\n"


def _replaced(text: str, names: dict[str, str]) -> str:
    for old, new_name in names.items():
        text = text.replace(old, new_name)
    return text


def _digest(files: Files) -> str:
    """Returns a digest that identifies the files as the template wrote them."""
    total = hashlib.sha256()
    for path, content in sorted(files.items()):
        total.update(f"{path}\0{hashlib.sha256(content).hexdigest()}\n".encode())
    return total.hexdigest()


def _template_commit(root: Path, digest: str) -> str:
    """Returns the commit whose files are exactly those of the project's template."""
    for commit in git.call(root, "log", "--format=%H", "--", MARKER).split():
        names = git.call(root, "ls-tree", "-r", "-z", "--name-only", commit).split("\0")[:-1]
        shown = {n: git.run(root, "show", f"{commit}:{n}").stdout for n in names if n != MARKER}
        if _digest(shown) == digest:
            return commit
    raise Problem(
        "no commit of this repository has only the template's files, so there is nothing to merge from (a squashed or "
        "shallow history loses it); run `wheelyard new` in another folder and compare"
    )


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

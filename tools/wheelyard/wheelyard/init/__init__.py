"""Runs `wheelyard init`: examines a project, writes the files that get it started, and says why."""

import re
import tomllib
from pathlib import Path

from rich.markup import escape
from rich.table import Table

from wheelyard.config import matrix, policy
from wheelyard.config.matrix import KNOWN
from wheelyard.core import shell
from wheelyard.core.progress import Display
from wheelyard.init import files, sources
from wheelyard.init.choice import Choice, choose
from wheelyard.init.sources import Found
from wheelyard.problem import Problem

WORKFLOW = ".github/workflows/wheels.yml"
OTHER_WORKFLOW = ".github/workflows/wheelyard.yml"
RUST = {"maturin", "setuptools-rust"}


def run(
    root: Path, display: Display, folder: str = "", name: str = "", import_name: str = ""
) -> None:
    """Writes the missing files without asking, and overwrites none. `folder` is the one below the root that has the
    project's setup. The names given take precedence over those of its files."""
    from wheelyard.init import metadata  # jobs that publish read sources and have no `build`

    place = root / folder
    if not any((place / name).is_file() for name in ("pyproject.toml", "setup.py")):
        raise Problem(
            f"{place} has no pyproject.toml and no setup.py, so it is not a Python project"
        )
    found = sources.read(root, folder)
    if rust := RUST & {found.backend, *metadata.required_to_build(found)}:
        raise Problem(
            f"{' and '.join(sorted(rust))} builds it from Rust, for which wheelyard's images have no compiler; "
            "maturin and cibuildwheel make wheels of Rust code"
        )
    if not found.is_native:
        raise Problem(
            f"{place} has no C, C++, CUDA or Cython source and no extension in setup.py: a pure Python project has "
            "one wheel for everybody, which `python -m build` makes"
        )
    if name:
        if not re.fullmatch(r"[A-Za-z0-9]+([-_.]+[A-Za-z0-9]+)*", name):
            raise Problem(f"`{name}` is not a name that a distribution may have, such as my-ext")
        found.name, found.reasons["name"] = name, "as asked"
    if import_name:
        if not all(part.isidentifier() for part in import_name.split(".")):
            raise Problem(f"`{import_name}` is not a name that Python can import, such as my_ext")
        found.import_name, found.reasons["import"] = import_name, "as asked"
        found.is_import_guessed = False
    known = tomllib.loads(KNOWN.read_text())
    metadata.ask(found, display)
    metadata.check_names(found)
    choice = choose(found, known)
    _show(found, choice, display)
    if choice.strategy != "universal" and not metadata.needs_torch(found):
        display.say(
            "nothing in it uses torch: one wheel per Python is enough, and cibuildwheel makes those"
        )
    if empty := sources.empty_submodules(root):
        display.say(
            f"not there: the submodules {', '.join(empty)}; `git submodule update --init --recursive` brings them"
        )
    uses = known["workflow"]["uses"]
    commit = _commit_of_the_tag(uses)
    # Many projects have a wheels.yml of their own, made before.
    is_theirs = (root / WORKFLOW).is_file() and "/wheels.yml@" not in (root / WORKFLOW).read_text()
    workflow = OTHER_WORKFLOW if is_theirs else WORKFLOW
    texts = {
        matrix.FILE: files.matrix(found, choice),
        policy.FILE: files.policy(found, choice),
        workflow: files.workflow(uses, commit),
    }
    for path, text in texts.items():
        file = root / path
        if file.exists():
            display.say(f"kept: {path} exists already")
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        display.say(f"written: {path}")
        if path == workflow and not commit:
            display.say(
                f"GitHub did not give the commit of {files.RELEASE}; {workflow} names the tag, which can be moved: "
                "put its commit there"
            )
    display.say("next: `wheelyard plan` shows what will be made, `wheelyard release` makes it")


def _commit_of_the_tag(uses: str) -> str:
    """Returns the commit of this version's tag in the repository of the reusable workflows; empty if it cannot be
    found."""
    address = f"https://github.com/{'/'.join(uses.split('/')[:2])}"
    tag = f"refs/tags/{files.RELEASE}"
    command = ["env", "GIT_TERMINAL_PROMPT=0", "git", "ls-remote", address, tag, f"{tag}^{{}}"]
    said = shell.capture(command, limit=30)
    return said.splitlines()[-1].split()[0] if said else ""


def _show(found: Found, choice: Choice, display: Display) -> None:
    table = Table(title=f"{found.name}: what was found, what was chosen, and why", show_lines=False)
    for column in ("what", "is", "because"):
        table.add_column(column, overflow="fold")
    reasons = found.reasons | choice.reasons
    rows = {
        "name": found.name,
        "import": found.import_name,
        "build": found.backend,
        "cuda": "yes" if found.has_cuda else "no",
        "tests": " ".join(found.tests) or "none",
        "strategy": choice.strategy,
        "torch": ", ".join(f"{t} ({cuda or 'every build'})" for t, cuda in choice.torches.items()),
        "python": ", ".join(choice.pythons),
        "tests need": ", ".join([*choice.dependencies, *choice.test_dependencies])
        or "nothing beyond torch and pytest",
    }
    for name, value in rows.items():
        table.add_row(*map(escape, (name, value, reasons.get(name, ""))))
    display.console.print(table)

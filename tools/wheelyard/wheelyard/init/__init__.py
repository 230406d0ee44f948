"""`wheelyard init`: finds out what a project is, writes the files that get it started, and says why."""

import tomllib
from pathlib import Path

from rich.markup import escape
from rich.table import Table

from wheelyard.config.matrix import KNOWN
from wheelyard.core.progress import Display
from wheelyard.init import files, sources
from wheelyard.init.choice import Choice, choose
from wheelyard.init.sources import Found
from wheelyard.problem import Problem

MATRIX, POLICY, WORKFLOW = "ci/matrix.toml", "ci/policy.toml", ".github/workflows/wheels.yml"
OTHER_LANGUAGES = ("maturin", "setuptools_rust")


def run(root: Path, display: Display, folder: str = "", import_name: str = "") -> None:
    """Asks nothing and overwrites nothing. `folder`: the one below the root that has the project's setup."""
    from wheelyard.init import metadata  # jobs that publish read sources and have no `build`

    place = root / folder
    if not any((place / name).is_file() for name in ("pyproject.toml", "setup.py")):
        raise Problem(f"{place} has no pyproject.toml and no setup.py: it is no Python project")
    found = sources.read(root, folder)
    if found.backend in OTHER_LANGUAGES:
        raise Problem(f"{found.backend} builds it, which wheelyard's images have no compiler for")
    if not found.is_native:
        raise Problem(
            f"{place} has no C, C++, CUDA or Cython source and no extension in setup.py: a pure Python project has "
            "one wheel for everybody, which `python -m build` makes"
        )
    if import_name:
        found.import_name, found.reasons["import"] = import_name, "as asked"
    known = tomllib.loads(KNOWN.read_text())
    metadata.ask(found, display)
    metadata.check_names(found)
    choice = choose(found, known)
    _show(found, choice, display)
    if empty := sources.empty_submodules(root):
        display.say(
            f"not there: the submodules {', '.join(empty)}; `git submodule update --init --recursive` brings them"
        )
    texts = {
        MATRIX: files.matrix(found, choice),
        POLICY: files.policy(found, choice),
        WORKFLOW: files.workflow(known["workflow"]["uses"]),
    }
    for name, text in texts.items():
        file = root / name
        if file.exists():
            display.say(f"left alone: {name} is there already")
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        display.say(f"written: {name}")
    display.say("next: `wheelyard plan` shows what will be made, `wheelyard release` makes it")


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
        "tests need": ", ".join(choice.dependencies) or "nothing beyond torch and pytest",
    }
    for name, value in rows.items():
        table.add_row(*map(escape, (name, value, reasons.get(name, ""))))
    display.console.print(table)

"""Asks Python about a distribution, and whether a verdict agrees: the rules of a draw."""

import re
import subprocess
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

LIMIT = 120  # seconds for an import
# Reasons that no file of a package tells: an import that fails for one of them is not counted.
OUTSIDE = {
    "display": r"DISPLAY|no display|cannot open display|Tcl_|_tkinter",
    "network": r"ConnectionError|URLError|gaierror|name resolution|Max retries|Connection refused",
    "settings": r"[Cc]redential|[Aa]pi[_ ]key|ImproperlyConfigured|environment variable|KeyError: '[A-Z_]+'",
    "program": r"executable|No such file or directory: '[\w-]+'|command not found",
    "time": r"no end after",
}


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def installed(site: Path) -> dict[str, Distribution]:
    return {canonical(one.name): one for one in distributions(path=[str(site)])}


def names_of(files: list[str], roots: list[str]) -> set[str]:
    """Returns the names that a distribution is imported by: its modules and packages, also below
    folders without code. `roots`: folders of it that .pth files put on Python's path."""
    for root in roots:
        files = [path.removeprefix(f"{root}/") for path in files]
    modules, packages = set(), set()
    for *folders, file in (path.split("/") for path in files):
        if not file.endswith((".py", ".so")) or any("." in folder for folder in folders):
            continue
        if not folders:
            modules.add(file.partition(".")[0])
        elif file.startswith("__init__."):
            packages.add(".".join(folders))
    inner = {one for one in packages for other in packages if one.startswith(f"{other}.")}
    return modules | (packages - inner)


def imported(python: str, name: str, settings: dict[str, str], folder: Path) -> str | None:
    """Returns the last line of Python's message; None if the import works, whatever happens when
    Python ends."""
    code = "import importlib, os, sys; importlib.import_module(sys.argv[1]); os.write(1, b'\\0')"
    words = [python, "-c", code, name]
    try:
        done = subprocess.run(
            words,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=LIMIT,
            env=settings,
            cwd=folder,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return f"no end after {LIMIT} s"
    if "\0" in done.stdout:
        return None
    lines = done.stderr.strip().splitlines()
    told = [line for line in lines if re.match(r"[\w.]*(Error|Exception|Warning|Exit)\b", line)]
    return (told[-1:] or lines[-1:] or [f"ended by signal {-done.returncode}"])[-1][:300]


def of_import(distribution: Distribution, ask: Any) -> tuple[str, dict[str, str | None]]:
    """Returns imports, fails, beside (the package of the distribution's name imports, another does
    not), a reason outside, or nothing; and Python's message for each name."""
    files = distribution.files or []
    paths = [path.read_text() for path in files if path.name.endswith(".pth")]
    names = names_of([str(path) for path in files], "\n".join(paths).splitlines())
    said: dict[str, str | None] = {name: ask(name) for name in sorted(names)}
    if not said:
        return "nothing", said
    errors = [error for error in said.values() if error]
    if not errors:
        return "imports", said
    own = canonical(distribution.name)
    main = [name for name in said if own in (canonical(name), canonical(name.split(".")[0]))]
    if main and not any(said[name] for name in main):
        return "beside", said
    reasons = [
        reason
        for error in errors
        for reason, pattern in OUTSIDE.items()
        if re.search(pattern, error)
    ]
    return (f"outside: {reasons[0]}" if len(reasons) >= len(errors) else "fails"), said


def judgement(verdict: str, truth: str) -> str:
    """Returns right, depends, FALSE works, FALSE fails, or not counted."""
    if truth not in ("imports", "fails"):
        return "not counted"
    if verdict == "depends":
        return "depends"
    says_fails = verdict in ("no", "fails")
    if says_fails == (truth == "fails"):
        return "right"
    return "FALSE fails" if says_fails else "FALSE works"

"""Pins every .in file again, at the newest versions it allows, and shows what changed: `make lock`.

A lock beside its .in file has each package with its version, and the hashes of the files that can be installed on Linux
with glibc, on x86_64 and aarch64. `uv` resolves them; its own version is pinned in ci/tools.lock.
"""

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
UV = [str(Path(sys.executable).with_name("uv")), "pip", "compile", "--quiet", "--universal"]
UV += ["--generate-hashes", "--no-header", "--no-annotate"]
PIN = re.compile(r"^([\w.-]+)==([^\s;\\]+)", re.MULTILINE)
# The end of the name of a wheel that serves CPython on one of our platforms.
SERVES_US = re.compile(r"-(py|cp)[^-]*-[^-]+-(any|(many)?linux_?\d[^-]*_(x86_64|aarch64))\.whl$")
SAME_TOOLS = ["--constraint", "ci/tools.lock"]
SAME_TESTS = ["--constraint", "tests/tests.lock", "--constraint", "ci/sign.lock"]
FEW = [*SAME_TOOLS, "--override", "ci/unneeded.txt"]


@dataclass(frozen=True)
class Lock:
    name: str  # its path without .in and .lock
    options: list[str] = field(default_factory=list)


# It has no .in file, but a block for each torch that the matrix names, followed by its dependencies if it is run.
TORCH = Lock("ci/torch")
# A limit for a Python without a GIL, for which uv cannot resolve: newer versions have no wheels for it.
FREE_THREADED = "cuda-bindings<13.1"
TOOLKITS = ("12.4", "12.4-static", "12.9", "13.0", "13.2")
# The order matters: some are constrained by an earlier one.
LOCKS = [
    Lock("ci/tools"),
    Lock("ci/sign", FEW),
    Lock("ci/publish", FEW),
    Lock("tests/tests", SAME_TOOLS),
    *(
        Lock(f"tools/{tool}/tests/tests", [*SAME_TOOLS, *SAME_TESTS])
        for tool in ("wheelscope", "wheelyard")
    ),
    Lock("docs/docs"),
    Lock("tools/wheelyard/wheelyard/docker/verify"),
    Lock("tools/wheelyard/wheelyard/docker/verify-t"),
    *(
        Lock(f"tools/wheelyard/wheelyard/docker/{name}", ["--no-deps"])
        for name in ("build", "native", "uv", *(f"toolkits/{name}" for name in TOOLKITS))
    ),
    TORCH,
]


def pins(text: str) -> dict[str, str]:
    """Returns the version of each package in a lock."""
    return dict(PIN.findall(text))


def moved(old: dict[str, str], new: dict[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yields each package whose version has changed: its name, the old version and the new; empty if there is none."""
    for name in sorted(old.keys() | new.keys()):
        before, after = old.get(name, ""), new.get(name, "")
        if before != after:
            yield name, before, after


def renew(lock: Lock, options: list[str]) -> Iterator[tuple[str, str, str]]:
    file = ROOT / f"{lock.name}.lock"
    before = pins(file.read_text()) if file.exists() else {}
    if lock is TORCH:
        old = {} if "--upgrade" in options or not file.exists() else whole_torches(file.read_text())
        text = "".join(old.get(r) or _torch(r, oldest) for r, oldest in torches().items())
    else:
        source = [f"{lock.name}.in", "--output-file", file, "--python-version", "3.11"]
        subprocess.run([*UV, *options, *lock.options, *source], cwd=ROOT, check=True)
        text = _lines(file.read_text(), "3.11")
    file.write_text(text)
    yield from moved(before, pins(text))


def torches() -> dict[str, str]:
    """Returns the releases of torch that the matrix names, each with the oldest Python that it has wheels for."""
    matrix = tomllib.loads((ROOT / "ci/matrix.toml").read_text())
    return {torch["release"]: torch["pythons"][0] for torch in matrix["torch"].values()}


def whole_torches(lock: str) -> dict[str, str]:
    """Returns the part of a lock for each torch, if it is complete: with its dependencies if it is run, without them if
    it is not."""
    parts = re.split(r"^(?=torch==)", lock, flags=re.MULTILINE)[1:]
    found = {pins(part)["torch"]: part for part in parts}
    return {r: part for r, part in found.items() if (len(pins(part)) > 1) == (r in runs())}


def _torch(release: str, oldest: str) -> str:
    """Returns the block of a torch, and those of its dependencies on the Pythons that it is run with."""
    pinned = f"torch=={release}"
    pythons = runs().get(release, [])
    found = _lines(pinned, oldest)
    if pythons:
        wanted = [pinned, *([FREE_THREADED] if any(p.endswith("t") for p in pythons) else [])]
        first = min((python.rstrip("t") for python in pythons), key=lambda p: int(p.split(".")[1]))
        needs = _lines("\n".join(wanted), first, deps=True)
        found += "".join(re.split(r"^torch==(?:.*\\\n)*.*\n", needs, flags=re.MULTILINE))
    return found


def runs() -> dict[str, list[str]]:
    """Returns the Pythons that each release of torch on PyPI is run with."""
    matrix = tomllib.loads((ROOT / "ci/matrix.toml").read_text())
    found: dict[str, list[str]] = {}
    for cell in matrix["verify"]["run"]:
        if not cell.get("debian"):
            found.setdefault(matrix["torch"][cell["torch"]]["release"], []).append(cell["python"])
    return found


def _lines(pinned: str, python: str, *, deps: bool = False) -> str:
    """Returns the lock's text: uv knows the file behind each hash, and leaves out those of Pythons before this one."""
    options = ["--format=pylock.toml", "--python-version", python, *([] if deps else ["--no-deps"])]
    done = subprocess.run(
        [*UV, *options, "-"],
        input=pinned,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return "".join(_block(package) for package in tomllib.loads(done.stdout)["packages"])


def _block(package: dict[str, Any]) -> str:
    marker = f" ; {package['marker']}" if "marker" in package else ""
    hashes = [
        f"--hash=sha256:{file['hashes']['sha256']}"
        for file in usable(package.get("wheels", []), package.get("sdist"))
    ]
    # A single hash stays on the line of its package.
    return (" " if len(hashes) == 1 else " \\\n    ").join(
        [f"{package['name']}=={package['version']}{marker}", *sorted(hashes)]
    ) + "\n"


def usable(wheels: list[dict[str, Any]], sdist: dict[str, Any] | None) -> list[dict[str, Any]]:
    """Returns the files that pip or uv may choose here; an sdist only if no wheel serves everyone."""
    chosen = [wheel for wheel in wheels if SERVES_US.search(wheel["url"])]
    if sdist and not any(wheel["url"].endswith("-none-any.whl") for wheel in chosen):
        chosen.append(sdist)
    return chosen


def main() -> None:
    """Renews the locks. `--keep` adds and drops what the .in files ask for, and leaves all other versions as they
    are."""
    from rich.console import (
        Console,
    )  # here, as a job without packages asks this module for the list of locks
    from rich.table import Table

    options = [] if sys.argv[1:] == ["--keep"] else ["--upgrade"]
    table = Table("lock", "package", "was", "is")
    for lock in LOCKS:
        for row in renew(lock, options):
            table.add_row(f"{lock.name}.lock", *row)
    console = Console()
    console.print(table if table.row_count else "every lock is as it was")


if __name__ == "__main__":
    main()

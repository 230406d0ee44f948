"""The packages in an image: a list of them all, which is compared with the one that the project keeps.

Locks pin what comes from PyPI. Debian's archive moves on, and torch is found by its version, so their lists are kept: a
difference is said at the end of a release, with what to type if it is welcome.
"""

from collections.abc import Iterator
from pathlib import Path

from wheelyard.core.workspace import Workspace

KEPT = "ci/packages"  # in the project; a folder for each architecture of machine
SHOWN = 4  # packages that are named
SYSTEM = "if command -v dpkg-query >/dev/null; then dpkg-query -W; else rpm -qa; fi"
# With a digest of what the package's own list says of its files; what an installer adds to it is left out.
PYTHON = """
import hashlib
from importlib.metadata import distributions
def content(package):
    files = {str(f): f.hash.value for f in package.files or () if f.hash and not str(f).startswith("..")}
    own = sorted(f"{n} {h}" for n, h in files.items() if not n.endswith(("/INSTALLER", "/REQUESTED", "_cache.json")))
    return hashlib.sha256("\\n".join(own).encode()).hexdigest()[:16]
print(*sorted({f"{p.name}=={p.version} {content(p)}" for p in distributions()}), sep="\\n")
"""


def list_packages(tag: str, workspace: Workspace, path: str) -> None:
    """Leaves a list of the system's and Python's packages in an image, with their versions."""
    (workspace.out / path).parent.mkdir(parents=True, exist_ok=True)
    options = ["--network=none", f"--volume={workspace.out}:/out"]
    script = f"{{ {SYSTEM} | LC_ALL=C sort; python -c '{PYTHON}'; }} >/out/{path}"
    what = f"listing the packages of {tag}"
    workspace.engine.run(tag, options, ["sh", "-ec", script], workspace.log, what=what)


def not_as_kept(project: Path, wheelhouse: Path, machine: str) -> list[str]:
    """What differs from the lists that a project keeps, in sentences for people; none where it keeps none."""
    folder = project / KEPT / machine
    lines = []
    for made in sorted((wheelhouse / "packages").glob("*.txt")) if folder.is_dir() else ():
        kept = folder / made.name
        old, new = (_read(file) if file.exists() else {} for file in (kept, made))
        changes = list(_changes(old, new))
        if not old:
            lines.append(f"{KEPT}/{machine} has no list of the packages in the image {made.stem}")
        elif changes:
            more = f" and {len(changes) - SHOWN} more" if len(changes) > SHOWN else ""
            lines.append(
                f"the image {made.stem} has other packages than {KEPT}/{machine}/{made.name} says: "
                f"{', '.join(changes[:SHOWN])}{more}"
            )
    if lines:
        lines.append(
            f"to keep the lists of these images: cp {wheelhouse}/packages/*.txt {folder}/, and commit them"
        )
    return lines


def _read(file: Path) -> dict[str, str]:
    """The version of each package, by its name: `libc6:amd64<tab>2.36-9`, `torch==2.10.0 0123456789abcdef`."""
    lines = file.read_text().replace("\t", "==").splitlines()
    return {name: version for name, _, version in (line.partition("==") for line in lines)}


def _changes(old: dict[str, str], new: dict[str, str]) -> Iterator[str]:
    for name in sorted(old.keys() | new.keys()):
        before, after = old.get(name), new.get(name)
        if before != after:
            yield f"{name} {before or 'none'} -> {after or 'none'}"

"""Lists the packages in an image, and compares the list with the one that the project keeps.

Locks pin the packages from PyPI. Debian's archive moves on, and torch is found by its version, so lists of them are
kept. A difference is reported at the end of a release, with the command that accepts it.
"""

from collections.abc import Iterator
from pathlib import Path

from wheelyard.core.workspace import Workspace
from wheelyard.problem import some
from wheelyard.tools import images

KEPT = "ci/packages"  # in the project; a folder for each architecture of machine
# Runs in the image. A Python package gets a digest of the hashes that its own list of files contains, without files
# that an installer adds. There are hundreds of packages, so a line has many.
LIST = """
import hashlib, subprocess, textwrap
from importlib.metadata import distributions
debian = r"dpkg-query -W -f '${binary:Package}=${Version}\\n'"
system = f"if command -v dpkg-query >/dev/null; then {debian}; else rpm -qa; fi"
def content(package):
    files = {str(f): f.hash.value for f in package.files or () if f.hash and not str(f).startswith("..")}
    own = sorted(f"{n} {h}" for n, h in files.items() if not n.endswith(("/INSTALLER", "/REQUESTED", "_cache.json")))
    return hashlib.sha256("\\n".join(own).encode()).hexdigest()[:16]
python = {f"{p.name}=={p.version}@{content(p)}" for p in distributions()}
for words in (subprocess.check_output(system, shell=True, text=True).split(), python):
    print(textwrap.fill(" ".join(sorted(words)), 160, break_long_words=False, break_on_hyphens=False))
"""


def list_packages(workspace: Workspace, path: str) -> None:
    """Writes a list of an image's system and Python packages, with their versions."""
    options = ["--network=none", f"--volume={workspace.out}:/out"]
    script = f'python -c "$1" >/out/{path}'
    what = "listing the packages of the image"
    images.run(workspace, options, ["sh", "-ec", script, "sh", LIST], what=what)


def not_as_kept(project: Path, release_folder: Path, machine: str) -> list[str]:
    """Returns sentences for people on how images differ from the lists that a project keeps; empty if it keeps none."""
    folder = project / KEPT / machine
    lines = []
    for made in sorted((release_folder / "packages").glob("*.txt")) if folder.is_dir() else ():
        kept = folder / made.name
        old, new = (_read(file) if file.exists() else {} for file in (kept, made))
        changes = list(_changes(old, new))
        if not old:
            lines.append(f"{KEPT}/{machine} has no list of the packages in the image {made.stem}")
        elif changes:
            lines.append(
                f"the image {made.stem} has other packages than {KEPT}/{machine}/{made.name} says: "
                + some(changes)
            )
    if lines:
        lines.append(
            f"to keep the lists of these images: cp {release_folder}/packages/*.txt {folder}/, and commit them"
        )
    return lines


def _read(file: Path) -> dict[str, str]:
    """Returns the version of each package, by its name: `libc6:amd64=2.36-9`, `torch==2.10.0@0123456789abcdef`."""
    pairs = (word.partition("=") for word in file.read_text().split())
    return {name: version.lstrip("=") for name, _, version in pairs}


def _changes(old: dict[str, str], new: dict[str, str]) -> Iterator[str]:
    for name in sorted(old.keys() | new.keys()):
        before, after = old.get(name), new.get(name)
        if before != after:
            yield f"{name} {before or 'none'} -> {after or 'none'}"

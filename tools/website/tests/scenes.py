"""Defines where the pages' commands run: in the repository, or in a folder made for them with the files that the page
mentions."""

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest
from walk import ROOT

PACKAGE = "cuda_ext_example"
# Variables that a `make` around a test sets for its commands.
OUTER = {"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "TORCH_CUDA_ARCH_LIST"}
MESSAGE = "ImportError: {}: undefined symbol: _ZN3c104cuda9SetDeviceEi"
MODULE = "flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so"


@dataclass(frozen=True)
class Scene:
    folder: Path
    variables: Mapping[str, str] = field(default_factory=dict)
    venv: Path = ROOT / ".venv"

    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name not in OUTER}
        tools = [self.venv / "bin", *self.venv.glob("lib/python3*/site-packages/nvidia/cu13/bin")]
        path = ":".join([*map(str, tools), kept["PATH"]])
        return kept | {"PATH": path, "COLUMNS": "80"} | dict(self.variables)


def repository(_: Path) -> Scene:
    return Scene(ROOT)


def copy(_: Path) -> Scene:
    """Returns a copy of the repository with its own .venv, for commands that build or write into the repository. It is
    made once, so only one process may use it: `make test-docs` gives each test file to one."""
    if "WALK" not in os.environ:
        pytest.skip("builds for minutes; `make test-docs` runs it")
    return _copied()


@cache
def _copied() -> Scene:
    folder = ROOT / "build/walk/copy"
    shutil.rmtree(folder.parent, ignore_errors=True)
    subprocess.run(["git", "clone", "--quiet", ROOT, folder], check=True)
    changed = subprocess.check_output(["git", "ls-files", "-m", "-z"], cwd=ROOT, text=True)
    for name in filter(None, changed.split("\0")):
        shutil.copy(ROOT / name, folder / name)
    shutil.copytree(ROOT / ".venv", folder / ".venv", symlinks=True, copy_function=os.link)
    for file in [*(folder / ".venv/bin").iterdir(), folder / ".venv/pyvenv.cfg"]:
        if not file.is_symlink() and str(ROOT).encode() in (content := file.read_bytes()):
            mode = file.stat().st_mode
            file.unlink()  # a hard link to the original
            file.write_bytes(content.replace(str(ROOT).encode(), str(folder).encode()))
            file.chmod(mode)
    return Scene(folder, _known_to_git(), folder / ".venv")


def _known_to_git() -> dict[str, str]:
    """Returns variables that tell git who its user is."""
    settings = {"github.user": "ada", "user.name": "Ada Lovelace", "user.email": "ada@example.org"}
    variables = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (name, value) in enumerate(settings.items()):
        variables |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return variables


def release(folder: Path) -> Scene:
    """Makes a folder with the files that a release hands on, and others that the pages use."""
    wheels = list((ROOT / "wheelhouse").glob(f"{PACKAGE}-*x86_64.whl"))
    if not wheels:
        pytest.skip("needs `make release`")
    shutil.copy(wheels[0], folder)
    sums = subprocess.check_output(["sha256sum", wheels[0].name], cwd=folder, text=True)
    (folder / "SHA256SUMS").write_text(sums + f"{'0' * 64}  another.whl\n")
    shutil.copy(ROOT / "tools/wheelyard/wheelyard/programs/smoke.py", folder)
    for name in ("ci", "build"):
        (folder / name).symlink_to(ROOT / name)
    return Scene(folder)


def extension(folder: Path) -> Scene:
    """Makes a folder that contains a usual CUDAExtension, which wheelyard does not know yet."""
    project = folder / "your-extension"
    shutil.copytree(
        ROOT / "tools/wheelyard/tests/ordinary", project, ignore=shutil.ignore_patterns("ci")
    )
    subprocess.run(["git", "init", "--quiet", project], check=True)
    subprocess.run(["git", "-C", project, "add", "--all"], check=True)
    return Scene(folder)


def train(folder: Path) -> Scene:
    """Makes a folder with a program that fails in a way that its users know, in the environment here."""
    packages = next(ROOT.glob(".venv/lib/python3*/site-packages"))
    (folder / "train.py").write_text(f"raise SystemExit({MESSAGE.format(packages / MODULE)!r})\n")
    return Scene(folder)


def home(folder: Path) -> Scene:
    return Scene(folder, {"HOME": str(folder)})


SCENES: dict[str, Callable[[Path], Scene]] = {
    "": repository,
    "a copy of the repository": copy,
    "a folder with the release": release,
    "a folder with your-extension": extension,
    "a folder with train.py": train,
    "a new home": home,
}

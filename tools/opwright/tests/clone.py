"""A second clone of this project, as a colleague would have it: other folder, own site-packages."""

import os
import subprocess
import sys
from pathlib import Path

import torch

from scripts.builder.toolchain import ROOT

KEPT = (
    "csrc/",
    "ci/matrix.toml",
    "scripts/",
    "cuda_ext_example/",
    "setup.py",
    "pyproject.toml",
    "README.md",
    "LICENSE",
)
LIBRARY = "cuda_ext_example"
CONTROLS = ("TORCH_CUDA_ARCH_LIST", "MAX_JOBS", "CXX", "CXXFLAGS")


def make_clone(folder: Path) -> Path:
    """Copies the tracked files that a build needs; torch is found inside the clone."""
    listed = subprocess.check_output(["git", "ls-files", "-z"], cwd=ROOT, text=True)
    for name in filter(None, listed.split("\0")):
        if name.startswith(KEPT) and not name.startswith("csrc/wheelscope/"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes((ROOT / name).read_bytes())
    (folder / "site").mkdir()
    (folder / "site/torch").symlink_to(Path(torch.__file__).parent)
    return folder


def environment(clone: Path, **given: str) -> dict[str, str]:
    """What a build in the clone sees; the caches and choices of the person testing stay out."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("CCACHE", "SCCACHE", "CUDA_EXT")) and name not in CONTROLS
    }
    kept["PATH"] = f"{Path(sys.executable).parent}:{kept['PATH']}"
    kept["PYTHONPATH"] = str(clone / "site")
    return kept | {"CUDA_EXT_CUDA": "on", "TORCH_CUDA_ARCH_LIST": "8.0+PTX"} | given


def start_build(clone: Path, target: str = LIBRARY, **given: str) -> "subprocess.Popen[str]":
    """Starts building the library, or another target, as setup.py does."""
    code = f"from scripts.builder import library; library.build(library.build_folder(), '0', {target!r})"
    return subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=clone,
        env=environment(clone, **given),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def build(clone: Path, target: str = LIBRARY, **given: str) -> str:
    """Builds in the clone; returns what the build said."""
    running = start_build(clone, target, **given)
    said, _ = running.communicate()
    assert running.returncode == 0, said
    return said


def build_folder(clone: Path) -> Path:
    (folder,) = (clone / "build").glob("extension-*")
    return folder


def objects(clone: Path) -> list[Path]:
    return list(build_folder(clone).glob("CMakeFiles/*.dir/**/*.o"))

"""Copies of the demo extension, as colleagues would have it: other folders, own site-packages."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import torch
from opwright.build.runtime import copy_runtime

DEMO = Path(__file__).with_name("demo")
NAME = "demo_ext"
CONTROLS = ("TORCH_CUDA_ARCH_LIST", "MAX_JOBS", "CXX", "CXXFLAGS", "PYTHONPATH")


def make_clone(folder: Path) -> Path:
    """Copies the demo's sources; torch is found inside the clone."""
    left = shutil.ignore_patterns("build", "_opwright", "*.so", "*.egg-info", "__pycache__")
    shutil.copytree(DEMO, folder, ignore=left)
    (folder / "site").mkdir()
    (folder / "site/torch").symlink_to(Path(torch.__file__).parent)
    return folder


def environment(clone: Path, **given: str) -> dict[str, str]:
    """What a build in the clone sees; the caches and choices of the person testing stay out."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("CCACHE", "SCCACHE", "OPWRIGHT")) and name not in CONTROLS
    }
    kept["PATH"] = f"{Path(sys.executable).parent}:{kept['PATH']}"
    kept["PYTHONPATH"] = str(clone / "site")
    return kept | {"OPWRIGHT_CUDA": "on", "TORCH_CUDA_ARCH_LIST": "8.0+PTX"} | given


def start_build(clone: Path, target: str = NAME, **given: str) -> "subprocess.Popen[str]":
    """Starts building the library, or another target, as setup.py does."""
    code = (
        "from opwright.build import library, project; "
        f"library.build(project.project_here(), {target!r})"
    )
    return subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=clone,
        env=environment(clone, **given),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def build(clone: Path, target: str = NAME, **given: str) -> str:
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


def install(clone: Path) -> None:
    """Builds for the CPU, and puts the library and the Python part into the clone's package."""
    cache = {"CCACHE_DIR": os.environ["CCACHE_DIR"]} if "CCACHE_DIR" in os.environ else {}
    build(clone, OPWRIGHT_CUDA="off", **cache)
    shutil.copy(build_folder(clone) / f"lib/lib{NAME}.so", clone / NAME)
    copy_runtime(clone / NAME)


def copy_of(clone: Path, folder: Path) -> Path:
    """Copies an installed clone, to change its Python."""
    shutil.copytree(clone, folder, symlinks=True, ignore=shutil.ignore_patterns("build", "site"))
    (folder / "site").mkdir()
    return folder


def python(clone: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs Python with the clone's package."""
    settings = environment(clone) | {"PYTHONPATH": str(clone)}
    return subprocess.run(
        [sys.executable, *arguments], cwd=clone, env=settings, capture_output=True, text=True
    )

"""The wheels of wheelyard and wheelscope, as `make tool-wheels` makes them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from repository import ROOT

SOURCES = {"wheelscope": ROOT / "csrc/wheelscope", "wheelyard": ROOT / "ci"}


def make(folder: Path) -> dict[str, Path]:
    """By the name of each distribution."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    subprocess.run(
        [*command, "--wheel-dir", folder, *SOURCES.values()],
        check=True,
        env={**os.environ, "PATH": path},
    )
    for source in SOURCES.values():  # setuptools would take old files from there the next time
        shutil.rmtree(source / "build", ignore_errors=True)
    return {name: next(folder.glob(f"{name}-*.whl")) for name in SOURCES}

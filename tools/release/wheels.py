"""Makes the wheels of wheelyard and wheelscope: `python -m tools.release.wheels FOLDER`.

wheelscope's is built in the folder of `make wheelscope`, so that nothing is compiled twice.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from wheelyard.config import matrix

ROOT = Path(__file__).resolve().parents[2]
PIP = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]


def make(folder: Path) -> dict[str, Path]:
    """Makes the wheels, and returns them by the name of each distribution. The same sources give the same bytes."""
    wheelyard = [*PIP, "--wheel-dir", folder, ROOT / "tools/wheelyard"]
    build_folder = f"--config-settings=build-dir={ROOT / 'tools/wheelscope/build/wheelscope'}"
    wheelscope = [*PIP, "--wheel-dir", folder, build_folder, ROOT / "tools/wheelscope"]
    # CMake and Ninja are among the programs of this environment.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    epoch = str(matrix.load(ROOT / matrix.FILE).build.source_date_epoch)
    for command in (wheelyard, wheelscope):
        subprocess.run(
            command, env={**os.environ, "PATH": path, "SOURCE_DATE_EPOCH": epoch}, check=True
        )
    shutil.rmtree(
        ROOT / "tools/wheelyard/build", ignore_errors=True
    )  # setuptools would take old files from it
    return {name: next(folder.glob(f"{name}-*.whl")) for name in ("wheelyard", "wheelscope")}


if __name__ == "__main__":
    make(Path(sys.argv[1]))

"""wheelscope is a program; this package finds it: `python -m wheelscope`."""

import os
import sysconfig
from pathlib import Path


def program() -> Path:
    """The program that was installed with this package, whatever PATH says."""
    site_packages = Path(__file__).resolve().parents[1]
    folders = [
        Path(sysconfig.get_path("scripts")),
        *(
            folder / "bin" for folder in list(site_packages.parents)[:3]
        ),  # pip install --prefix, --user
        site_packages / "bin",  # pip install --target
    ]
    for folder in folders:
        if os.access(folder / "wheelscope", os.X_OK):
            return folder / "wheelscope"
    raise FileNotFoundError(
        "the program wheelscope is not beside this package: "
        "pip install --force-reinstall wheelscope"
    )

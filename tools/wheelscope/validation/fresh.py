"""Makes fresh environments to try wheels in, with a Python that every torch has wheels for."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

PYTHON = "3.11"
UV = shutil.which("uv") or "uv"


def run(words: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, **options)


def fresh_environment(folder: Path) -> tuple[str, dict[str, str]]:
    """Makes an environment in place of the last one; returns its Python, and the variables to use
    it with. Large files are shared with a cache beside it."""
    environment = folder / "environment"
    shutil.rmtree(environment, ignore_errors=True)
    settings = {
        **os.environ,
        "UV_CACHE_DIR": str(folder / "cache"),
        "VIRTUAL_ENV": str(environment),
        "PYTHONPYCACHEPREFIX": str(folder / "cache/bytecode"),
    }
    run([UV, "venv", "--quiet", "--python", PYTHON, str(environment)], env=settings, check=True)
    return str(environment / "bin/python"), settings

"""A virtual environment holds exactly what its locks pin, and one that was made halfway is made anew."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def make(tmp_path: Path) -> Path:
    """The script in a tree of its own, with a lock that pins nothing."""
    (tmp_path / "ci").mkdir()
    shutil.copy(ROOT / "ci/venv.sh", tmp_path / "ci")
    (tmp_path / "empty.lock").touch()
    return tmp_path / "ci/venv.sh"


def run(script: Path, lock: str = "empty.lock", **variables: str) -> str:
    clean = {
        name: value
        for name, value in os.environ.items()
        if name not in ("VENV", "VIRTUAL_ENV", "SSL_CERT_FILE") and not name.startswith("PIP_")
    }
    done = subprocess.run(
        [script, lock], env=clean | variables, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_killed_before_it_had_pip_it_is_made_anew(make: Path) -> None:
    folder = make.parents[1] / ".venv"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin/python").symlink_to("/usr/bin/env")
    assert "creating .venv" in run(make)
    subprocess.run(
        [folder / "bin/python", "-m", "pip", "--version"], check=True, capture_output=True
    )
    assert run(make) == ""


def test_uv_is_told_what_pips_settings_say(make: Path, tmp_path: Path) -> None:
    run(make)
    uv = tmp_path / ".venv/bin/uv"
    uv.write_text(f'#!/bin/sh\necho "$UV_DEFAULT_INDEX $SSL_CERT_FILE" >{tmp_path}/told\n')
    uv.chmod(0o755)
    settings = tmp_path / "pip.conf"
    settings.write_text("[global]\nindex-url = https://files.example/simple\ncert = /some/ca\n")
    (tmp_path / "other.lock").write_text("# another\n")
    run(make, "other.lock", PIP_CONFIG_FILE=str(settings), PIP_CERT="/other/ca")
    assert (tmp_path / "told").read_text() == "https://files.example/simple /other/ca\n"

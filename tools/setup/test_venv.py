"""Tests venv.sh: a virtual environment has exactly what its locks pin, and a half-made one is made anew."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("venv.sh")


@pytest.fixture
def make(tmp_path: Path) -> Path:
    """Copies the script into a tree of its own, with a lock that pins nothing."""
    folder = tmp_path / "tools/setup"
    folder.mkdir(parents=True)
    for name in ("venv.sh", "need.sh"):
        shutil.copy(SCRIPT.with_name(name), folder)
    (tmp_path / "empty.lock").touch()
    return folder / "venv.sh"


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
    folder = make.parents[2] / ".venv"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin/python").symlink_to("/usr/bin/env")
    assert "creating .venv" in run(make)
    subprocess.run(
        [folder / "bin/python", "-m", "pip", "--version"], check=True, capture_output=True
    )
    assert run(make) == ""


def test_in_a_moved_clone_it_is_made_anew(make: Path, tmp_path: Path) -> None:
    run(make)
    moved = make.parents[2].rename(tmp_path.with_name("it's moved"))
    script = moved / "tools/setup/venv.sh"
    assert "creating .venv" in run(script)
    assert run(script) == ""
    assert run(script, VENV=str(moved / ".venv")) == ""


def test_a_machine_without_python_is_given_one(make: Path, tmp_path: Path) -> None:
    """The smallest images of Debian are like this."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ["basename", "cmp", "cp", "dirname", "ln", "mktemp", "rm", "sed", "sh"]:
        (programs / name).symlink_to(shutil.which(name) or name)
    make.with_name("need.sh").write_text(
        f'#!/bin/sh\necho "needs $*"\nln -s "{sys.executable}" "{programs}/python3"\n'
    )
    said = run(make, PATH=str(programs)).splitlines()
    assert said[0] == "needs python3 python3-venv"
    assert said[1].startswith("creating .venv")


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


def test_where_uv_fails_it_says_that_pip_goes_on(make: Path, tmp_path: Path) -> None:
    run(make)
    uv = tmp_path / ".venv/bin/uv"
    uv.write_text("#!/bin/sh\necho 'error: UnknownIssuer' >&2; exit 2\n")
    uv.chmod(0o755)
    (tmp_path / "other.lock").write_text("# another\n")
    assert "pip installs them" in run(make, "other.lock")
    assert run(make, "other.lock") == ""


def python(folder: Path, name: str, code: str) -> None:
    """Makes a program that a shell finds by the name of a Python."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{code}\n")
    (folder / name).chmod(0o755)


def test_a_later_python_is_taken_where_python3_is_too_old(make: Path, tmp_path: Path) -> None:
    python(tmp_path / "bin", "python3", "exit 1")
    python(tmp_path / "bin", "python3.12", f'exec {shlex.quote(sys.executable)} "$@"')
    assert "creating .venv" in run(make, PATH=f"{tmp_path}/bin:/usr/bin:/bin")


def test_without_one_it_says_what_to_do(make: Path, tmp_path: Path) -> None:
    python(tmp_path / "bin", "python3", "echo Python 3.10.12; exit 1")
    for version in range(11, 16):
        python(tmp_path / "bin", f"python3.{version}", "exit 1")
    python(tmp_path / "bin", "dpkg-query", "exit 1")
    with pytest.raises(subprocess.CalledProcessError) as failed:
        run(make, PATH=f"{tmp_path}/bin:/usr/bin:/bin", INSTALL="no")
    assert "install them with: sudo apt-get install python3.11-venv" in failed.value.stderr
    assert "Python 3.11 or later is needed, and this is Python 3.10.12" in failed.value.stderr

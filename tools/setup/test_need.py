"""Tests need.sh: it does not ask for what is there, and installs nothing against anybody's will."""

import os
import subprocess
from pathlib import Path

SCRIPT = Path(__file__).with_name("need.sh")


def need(*packages: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [SCRIPT, *packages], env=os.environ | variables, capture_output=True, text=True
    )


def test_a_program_on_path_counts(tmp_path: Path) -> None:
    (tmp_path / "no-such-package").write_text("#!/bin/sh\n")
    (tmp_path / "no-such-package").chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    assert need("no-such-package", "sh", PATH=path).returncode == 0


def test_install_no_says_what_to_type() -> None:
    done = need("sh", "no-such-package", "nor-this", INSTALL="no")
    assert done.returncode == 1
    assert done.stderr.endswith("sudo apt-get install no-such-package nor-this\n")
    assert done.stdout == ""


def test_without_apt_get(tmp_path: Path) -> None:
    for program in ("sh", "grep"):
        (tmp_path / program).symlink_to(f"/bin/{program}")
    done = need("no-such-package", PATH=str(tmp_path))
    assert done.returncode == 1
    assert "no apt-get" in done.stderr

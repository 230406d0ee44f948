"""Installs Debian packages where this program may: as root. Elsewhere it says what to type."""

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from wheelyard.core.environment import FIXED
from wheelyard.core.lock import turn
from wheelyard.problem import Problem

TURN = Path("/run/ci-debian.turn")  # tools/setup/need.sh waits by it too


def need(packages: Sequence[str], say: Callable[[str], None], advice: str) -> None:
    """Installs the packages that are missing; `advice` is shown to someone who may not."""
    if all(map(_is_installed, packages)):
        return
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise Problem(advice)
    with turn(TURN):  # apt waits for another apt in part only
        if wanted := [package for package in packages if not _is_installed(package)]:
            _install(wanted, say, advice)


def _install(wanted: list[str], say: Callable[[str], None], advice: str) -> None:
    say(f"installing Debian's {', '.join(wanted)}")
    waits = ["-o", "DPkg::Lock::Timeout=300"]  # a fresh machine may be upgrading itself
    install = ["apt-get", "-qy", *waits, "install", "--no-install-recommends", *wanted]
    environment = {**os.environ, **FIXED}
    for command in (["apt-get", "-q", "update"], install):
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        if done.returncode != 0:
            end = "\n".join((done.stdout + done.stderr).strip().splitlines()[-15:])
            raise Problem(f"{', '.join(wanted)} could not be installed:\n{end}\n{advice}")


def _is_installed(package: str) -> bool:
    try:
        query = ["dpkg-query", "-W", "-f=${Status}", package]
        done = subprocess.run(query, capture_output=True, text=True)
    except FileNotFoundError:
        return False
    return "ok installed" in done.stdout

"""Installs Debian packages if it may: as root, or through sudo without a password. Otherwise, or with INSTALL=no, it
says what to type."""

import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Sequence

from wheelyard.core import shell
from wheelyard.core.environment import FIXED
from wheelyard.problem import Problem

# Locks out other installers, tools/setup/need.sh included: apt itself waits only partly for another apt.
TURN = "/run/ci-debian.turn"
# The timeout lets a fresh machine finish upgrading itself.
INSTALL = """apt-get -q update &&
apt-get -qy -o DPkg::Lock::Timeout=300 install --no-install-recommends "$@" """
_turn = threading.Lock()


def need(packages: Sequence[str], say: Callable[[str], None], advice: str) -> None:
    """Installs the packages that are missing; `advice` is shown to users who may not install them."""
    with _turn:
        if wanted := [package for package in packages if not _is_installed(package)]:
            _install(wanted, say, advice)


def _install(wanted: list[str], say: Callable[[str], None], advice: str) -> None:
    as_root = _as_root()
    if as_root is None or os.environ.get("INSTALL") == "no" or not shutil.which("apt-get"):
        raise Problem(advice)
    say(f"installing Debian's {', '.join(wanted)}")
    command = [*as_root, "flock", TURN, "sh", "-c", INSTALL, "sh", *wanted]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **FIXED})
    if done.returncode != 0:
        end = "\n".join((done.stdout + done.stderr).strip().splitlines()[-15:])
        raise Problem(f"{', '.join(wanted)} could not be installed:\n{end}\n{advice}")


def _as_root() -> list[str] | None:
    """Returns the prefix that runs a command as root; None if that would take a password."""
    if os.geteuid() == 0:
        return []
    environment = [f"{name}={value}" for name, value in FIXED.items()]  # sudo clears it
    sudo = ["sudo", "--non-interactive"]
    may = shell.capture([*sudo, "true"]) is not None
    return [*sudo, "env", *environment] if may else None


def _is_installed(package: str) -> bool:
    said = shell.capture(["dpkg-query", "-W", "-f=${Status}", package])
    return "ok installed" in (said or "")

"""Tests installing from an index: from TestPyPI only our package, and on the host's network only if necessary."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from wheelyard.steps import install


@pytest.mark.parametrize("name", ["embedded", "own", "testpypi", "pypi"])
def test_on_testpypi_nothing_but_the_package_is_taken(name: str) -> None:
    command = install.pip_install(name, "https://index.example/simple/", "demo==1.0")
    assert ("--no-deps" in command.split()) == (name == "testpypi")
    assert command.split()[-1] == "demo==1.0"


@pytest.mark.parametrize(("host", "user"), [(0, 65534), (1000, 1000)])
def test_pip_is_never_root(host: int, user: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("geteuid", "getegid"):
        monkeypatch.setattr(os, name, lambda: host)
    assert f"--user={user}:{user}" in install.ordinary_user()


def test_what_is_installed_goes_beside_what_is_there(tmp_path: Path) -> None:
    """pip installs into a folder of the user's own; the packages of the image count as installed, and can be
    imported."""
    place = install.OWN_PLACE.replace("/tmp/own", str(tmp_path / "own"))
    look = "import pytest, sysconfig; print(sysconfig.get_path('purelib'))"
    words = ["sh", "-c", f'{place} && python -c "{look}" && python -m pip show pytest']
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    shown = subprocess.run(
        words, env={**os.environ, "PATH": programs}, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert shown[0].startswith(str(tmp_path / "own"))
    assert f"Location: {Path(pytest.__file__).parents[1]}" in shown


def test_the_hosts_network_is_for_an_index_on_this_machine() -> None:
    assert install.network("http://127.0.0.1:3141/root/x/+simple/") == ["--network=host"]
    assert install.network("https://index.example/simple/") == []

"""Tests what a job's programs see of this machine: the variables that the lists name, and nothing else."""

import os
from pathlib import Path

import pytest
from demo_wheel import make_wheel
from wheelyard.core import shell
from wheelyard.steps import gate
from wheelyard.tools import metadata

# Each of these changes what a program of ours makes, or where it looks.
SETTINGS = {
    "CIBW_ENVIRONMENT_LINUX": "EVIL=1",
    "CIBW_BEFORE_BUILD_LINUX": "touch evil.py",
    "NVCC_APPEND_FLAGS": "-DEVIL",
    "CFLAGS": "-DEVIL",
    "PYTHONPATH": "/evil",
    "PYTHONSTARTUP": "/evil.py",
    "PIP_NO_BINARY": ":all:",
    "GIT_DIR": "/evil",
    "AUDITWHEEL_PLAT": "linux_riscv64",
    "LD_PRELOAD": "",
    "SOURCE_DATE_EPOCH": "1",
    "LANG": "tr_TR.UTF-8",
    "TZ": "Asia/Kathmandu",
}


def seen(folder: Path, **told: str) -> dict[str, str]:
    """Returns the environment of a program, its umask and its current folder."""
    script = "env; echo umask=$(umask); echo folder=$(pwd)"
    shell.run(["sh", "-c", script], folder / "log", what="looking", env=told)
    lines = (folder / "log").read_text().splitlines()[1:]
    return dict(line.split("=", 1) for line in lines)


def test_nothing_of_the_shell_reaches_a_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in SETTINGS.items():
        monkeypatch.setenv(name, value)
    found = seen(tmp_path, TOLD="yes")
    assert found["TOLD"] == "yes"
    assert not SETTINGS.keys() & found.keys() - {"TZ"}
    assert (found["TZ"], found["LC_ALL"], found["PYTHONNOUSERSITE"]) == ("UTC", "C.UTF-8", "1")


@pytest.mark.parametrize("mask", [0o022, 0o002, 0o027, 0o077])
def test_umask_home_and_folder_are_fixed(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        found = seen(tmp_path)
    finally:
        os.umask(before)
    assert found["umask"] == "0022"
    assert found["HOME"] != os.environ["HOME"]
    assert found["folder"] == found["HOME"]
    assert not Path(found["HOME"]).exists(), "it is removed with the program"


def test_a_relative_folder_of_path_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f".::bin:{os.environ['PATH']}")
    assert all(part.startswith("/") for part in seen(tmp_path)["PATH"].split(":"))


@pytest.mark.parametrize("module", ["check_wheel_contents.py", "twine.py", "zipfile.py"])
def test_a_module_in_the_current_folder_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    wheel = make_wheel(tmp_path, "demo")
    planted, sign = tmp_path / "project" / module, tmp_path / "evil"
    planted.parent.mkdir()
    planted.write_text(f"open({str(sign)!r}, 'w')\nraise SystemExit(0)\n")
    monkeypatch.chdir(planted.parent)
    shell.run(gate.contents_check(wheel, {}), tmp_path / "log", what="the check")
    metadata.check(wheel, {}, tmp_path / "log")
    assert not sign.exists()

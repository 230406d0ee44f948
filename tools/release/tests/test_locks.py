"""Tests the locks: every .in file has one, `make lock` knows it, and changes are shown."""

import os
import subprocess
from pathlib import Path

import pytest
from wheelyard.plan import torch_lock

from tools.release import locks
from tools.release.locks import ROOT

TEXT = """
alpha==1.0 \\
    --hash=sha256:00
beta.x==2.0 ; sys_platform == 'win32' \\
    --hash=sha256:11
    # via alpha==9
"""


def test_pins() -> None:
    assert locks.pins(TEXT) == {"alpha": "1.0", "beta.x": "2.0"}


def test_files_that_cannot_be_installed_here_are_left_out() -> None:
    ends = {
        "cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64": True,
        "cp313-cp313t-manylinux_2_28_aarch64": True,
        "py3-none-manylinux1_x86_64": True,
        "cp39-abi3-manylinux_2_34_x86_64": True,
        "cp311-cp311-musllinux_1_2_x86_64": False,
        "cp311-cp311-manylinux_2_31_armv7l": False,
        "cp311-cp311-manylinux_2_5_i686": False,
        "pp311-pypy311_pp73-manylinux_2_28_x86_64": False,
        "cp311-cp311-macosx_11_0_arm64": False,
        "cp311-cp311-win_amd64": False,
    }
    wheels = [{"url": f"https://files.example/a/alpha-1.0-{end}.whl"} for end in ends]
    sdist = {"url": "https://files.example/a/alpha-1.0.tar.gz"}
    wanted = [wheel for wheel, serves in zip(wheels, ends.values(), strict=True) if serves]
    assert locks.usable(wheels, sdist) == [*wanted, sdist]
    assert locks.usable(wheels, None) == wanted
    pure = {"url": "https://files.example/a/alpha-1.0-py2.py3-none-any.whl"}
    assert locks.usable([pure], sdist) == [pure]


def test_what_moved() -> None:
    new = {"alpha": "1.1", "gamma": "3"}
    rows = list(locks.moved(locks.pins(TEXT), new))
    assert rows == [("alpha", "1.0", "1.1"), ("beta.x", "2.0", ""), ("gamma", "", "3")]


def test_every_file_that_pins_is_known() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "*.in", "*.lock"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    # peers.lock is renewed by hand: the differences that its test lists are those of one version of each peer.
    others = ("MANIFEST.in", "build_info.h.in", "peers.lock")
    known = {f"{lock.name}.{end}" for lock in locks.LOCKS for end in ("in", "lock")}
    known.remove("ci/torch.in")  # the matrix says which
    assert {name for name in listed if not name.endswith(others)} == known


def test_every_lock_has_hashes_and_what_its_in_file_names() -> None:
    for lock in locks.LOCKS:
        text = (ROOT / f"{lock.name}.lock").read_text()
        pinned = locks.pins(text)
        assert pinned, lock.name
        assert text.count("--hash=sha256:") >= len(pinned), lock.name


def test_every_torch_of_the_matrix_is_pinned_with_what_it_needs_where_it_is_run() -> None:
    pins = torch_lock.load(ROOT)
    assert list(pins) == list(locks.torches())
    assert {release for release, lines in pins.items() if len(lines) > 1} == locks.runs().keys()


def test_what_torch_needs_is_kept_where_no_newer_version_is_asked_for() -> None:
    text = (ROOT / "ci/torch.lock").read_text()
    whole = locks.whole_torches(text)
    assert "".join(whole.values()) == text
    run = next(iter(locks.runs()))
    alone = "".join(
        part if r != run else part[: part.index("\n")] + "\n" for r, part in whole.items()
    )
    assert run not in locks.whole_torches(alone), "it is resolved again"


@pytest.mark.skipif(not os.environ.get("ONLINE"), reason="it asks PyPI: ONLINE=1")
@pytest.mark.parametrize("arch", ["x86_64", "aarch64"])
@pytest.mark.parametrize("release", locks.runs())
def test_nothing_that_a_torch_needs_is_missing(release: str, arch: str, tmp_path: Path) -> None:
    """For a Python without a GIL, only making the image tells."""
    wanted = tmp_path / "torch.txt"
    wanted.write_text(torch_lock.requirements(release, torch_lock.load(ROOT)))
    for python in (python.rstrip("t") for python in locks.runs()[release]):
        command = [locks.UV[0], "pip", "install", "--dry-run", "--require-hashes", "-r", wanted]
        command += ["--only-binary=:all:", f"--target={tmp_path}", f"--python-version={python}"]
        platform = f"--python-platform={arch}-manylinux_2_36"
        done = subprocess.run([*command, platform], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_uv_is_pinned_too() -> None:
    assert "uv" in locks.pins((ROOT / "ci/tools.lock").read_text())

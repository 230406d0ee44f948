"""Locks: every .in file has one, `make lock` knows it, and what moved is shown."""

import subprocess

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


def test_what_moved() -> None:
    new = {"alpha": "1.1", "gamma": "3"}
    rows = list(locks.moved(locks.pins(TEXT), new))
    assert rows == [("alpha", "1.0", "1.1"), ("beta.x", "2.0", ""), ("gamma", "", "3")]


def test_every_file_that_pins_is_known() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "*.in", "*.lock"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    others = ("MANIFEST.in", "build_info.h.in", "actions.lock")
    known = {f"{lock.name}.{end}" for lock in locks.LOCKS for end in ("in", "lock")}
    known.remove("ci/torch.in")  # the matrix says which
    assert {name for name in listed if not name.endswith(others)} == known


def test_every_lock_has_hashes_and_what_its_in_file_names() -> None:
    for lock in locks.LOCKS:
        text = (ROOT / f"{lock.name}.lock").read_text()
        pinned = locks.pins(text)
        assert pinned, lock.name
        assert text.count("--hash=sha256:") >= len(pinned), lock.name


def test_every_torch_of_the_matrix_is_pinned() -> None:
    text = (ROOT / "ci/torch.lock").read_text()
    assert locks.PIN.findall(text) == [("torch", release) for release in locks.torches()]
    assert list(torch_lock.load(ROOT)) == locks.torches()


def test_uv_is_pinned_too() -> None:
    assert "uv" in locks.pins((ROOT / "ci/tools.lock").read_text())

"""Tests a Debian suite as an image: it is made once, however many ask for it."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from repository import program
from wheelyard.core.engine import Engine
from wheelyard.core.progress import Display
from wheelyard.core.workspace import Workspace
from wheelyard.run import local
from wheelyard.tools import suite


@pytest.mark.parametrize("gone", [0, 1])
def test_two_that_need_one_make_it_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gone: int
) -> None:
    """The second one waits: an image that was made twice would have two ids. A suite that is gone from the mirror is in
    the archive."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # the user's has images of these names
    monkeypatch.setattr(suite.debian, "need", lambda *_: None)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    programs = {
        "docker": f"""case $1 in
          image) test -e {tmp_path}/there && echo "$5";;
          import) touch {tmp_path}/there;;
          export) touch "${{2#--output=}}";;
        esac""",
        "fakeroot": 'exec "$@"',
        "debootstrap": f"""case "$*" in *{suite.ARCHIVE}*) ;; *) test {gone} = 0 || exit 1;; esac
          echo made >>{tmp_path}/made; sleep 0.5""",
    }
    for name, line in programs.items():
        program(tmp_path, name, line)
    engine, here = Engine("docker", "", ""), local.Here(tmp_path / "release", Display())

    def ensure(name: str) -> str:
        folder = tmp_path / name
        folder.mkdir()
        place = Workspace({}, folder, folder / "log", folder, folder, folder, here)
        return suite.ensure("bookworm", engine, place)

    with ThreadPoolExecutor() as pool:
        first, second = pool.map(ensure, "ab")
    assert first == second
    assert (tmp_path / "made").read_text() == "made\n"

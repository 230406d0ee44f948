"""The command `wheelyard` among other programs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from repository import ROOT


@pytest.mark.parametrize(
    "words", ["schema matrix", "schema policy --markdown", "plan", "plan --github", "digests"]
)
def test_a_reader_that_has_left(words: str, tmp_path: Path) -> None:
    done = subprocess.run(
        f"{sys.executable} -m wheelyard {words} | true",  # which is over before anything is written
        shell=True,
        cwd=ROOT,
        env={**os.environ, "WHEELHOUSE": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""

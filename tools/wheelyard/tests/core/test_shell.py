"""Tests how programs are run: a failure shows the end of the log, and none runs for ever."""

import subprocess
import time
from pathlib import Path

import pytest
from wheelyard.core import shell
from wheelyard.problem import Problem


def test_a_failure_shows_the_end_of_the_log(tmp_path: Path) -> None:
    with pytest.raises(
        Problem, match=r"(?s)the test failed \(exit code 3\).*\| out of luck.*The whole log"
    ):
        shell.run(["sh", "-c", "echo out of luck; exit 3"], tmp_path / "log", what="the test")


def test_a_program_that_hangs_is_stopped_with_its_children(tmp_path: Path) -> None:
    began = time.monotonic()
    with pytest.raises(Problem, match="the test was stopped: it had not ended after 1 s"):
        shell.run(
            ["sh", "-c", "sleep 61.7 & sleep 61.7"], tmp_path / "log", what="the test", limit=1
        )
    assert time.monotonic() - began < 20
    processes = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout
    assert "sleep 61.7" not in processes.splitlines()

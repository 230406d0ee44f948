"""Tests how programs are run: a failure shows the end of the log, and none runs for ever."""

import os
import time
from pathlib import Path

import pytest
from repository import sleeping, wait_until
from wheelyard.core import shell
from wheelyard.problem import Problem


def test_a_failure_shows_the_end_of_the_log(tmp_path: Path) -> None:
    with pytest.raises(
        Problem, match=r"(?s)the test failed \(exit code 3\).*\| out of luck.*The whole log"
    ):
        shell.run(["sh", "-c", "echo out of luck; exit 3"], tmp_path / "log", what="the test")


def test_a_program_that_hangs_is_stopped_with_its_children(tmp_path: Path) -> None:
    began, seconds = time.monotonic(), f"61.{os.getpid()}"
    with pytest.raises(Problem, match="the test was stopped: it had not ended after 1 s"):
        shell.run(
            ["sh", "-c", f"sleep {seconds} & sleep {seconds}"],
            tmp_path / "log",
            what="the test",
            limit=1,
        )
    assert time.monotonic() - began < 20
    wait_until(lambda: sleeping(seconds) == 0)

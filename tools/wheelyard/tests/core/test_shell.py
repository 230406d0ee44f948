"""Tests how programs are run: none runs for ever, and a failure shows its cause, not the traceback below it."""

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


NINJA = """building 'theirs._C' extension
[1/2] c++ -MMD ...
FAILED: /tmp/build/ops.o
/project/csrc/ops.cpp:12:3: error: 'scale' was not declared in this scope
   12 |   scale(x);
      |   ^~~~~
ninja: build stopped: subcommand failed.
Traceback (most recent call last):
  File "/opt/venv/lib/python3.11/site-packages/torch/utils/cpp_extension.py", line 2506, in _run_ninja_build
    subprocess.run(
subprocess.CalledProcessError: Command '['ninja', '-v']' returned non-zero exit status 1.
RuntimeError: Error compiling objects for extension
"""
LOGS = {
    NINJA: "/project/csrc/ops.cpp:12:3: error: 'scale' was not declared in this scope",
    'csrc/a.cu(7): error: identifier "n" is undefined\n1 error detected\n': 'csrc/a.cu(7): error: identifier "n"',
    "  \x1b[1m/p/a.c:1:10:\x1b[m \x1b[31mfatal error: \x1b[mgmp.h: No such file\n": "/p/a.c:1:10: fatal error: gmp.h",
    "ld: a.o: in f:\na.c:(.text+0x4): undefined reference to `g'\ncollect2: error\n": "a.c:(.text+0x4): undefined",
    "collected 3 items\nE   ImportError: libgomp.so.1: cannot open shared object file\n": "E   ImportError: libgomp",
    "#1 2.2 ERROR: No matching distribution found for torch==9\nModuleNotFoundError: No module named 'torch'\n": (
        "ERROR: No matching distribution found for torch==9"
    ),
    "#9 1.2 ERROR: In --require-hashes mode, all requirements must have their versions pinned\n#9 1.2     attrs\n": (
        "ERROR: In --require-hashes mode"
    ),
    "* Building sdist...\nerror in Theirs setup command: use_2to3 is invalid.\n": "error in Theirs setup command:",
    "#12 3.1 CMake Error at CMakeLists.txt:4 (find_package):\n#12 3.1   no Eigen\n": "CMake Error at CMakeLists.txt:4",
}


@pytest.mark.parametrize("log", LOGS)
def test_the_cause_is_found(log: str) -> None:
    assert shell.cause(log.splitlines())[0].startswith(LOGS[log])


def test_no_cause_is_made_up() -> None:
    assert shell.cause(["all is well", "0 errors", "error: something else"]) == []


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        (
            "  \x1b[1m/p/a.c:1:10:\x1b[m \x1b[31mfatal error: \x1b[mgmp.h: No such file or directory",
            "[build] apt",
        ),
        ("/usr/bin/ld: cannot find -lfftw3: No such file or directory", "[build] apt"),
        ("sh: 1: x.sh: No such file or directory", ""),
    ],
)
def test_what_a_library_of_debian_would_cure_is_said(line: str, hint: str) -> None:
    assert hint in " ".join(shell.hints([line]))
    assert bool(hint) == bool(shell.hints([line]))

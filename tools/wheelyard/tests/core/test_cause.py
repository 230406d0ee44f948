"""Tests that the cause of a failure is found: the first error of a compiler, a linker or a test, not the traceback
below it."""

import pytest
from wheelyard.core import cause

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
    assert cause.of(log.splitlines())[0].startswith(LOGS[log])


def test_no_cause_is_made_up() -> None:
    assert cause.of(["all is well", "0 errors", "error: something else"]) == []


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
    assert hint in " ".join(cause.hints([line]))
    assert bool(hint) == bool(cause.hints([line]))

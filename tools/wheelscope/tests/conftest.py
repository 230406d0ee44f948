"""Fixtures: the built programs, a package index, and a library for it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import package_index
import pytest
import sample_wheels
from package_index import Index
from program import PROGRAM, QUESTIONS, Ask, Fit, Scope, run_valid, valid


@pytest.fixture(scope="session")
def scope() -> Scope:
    if not PROGRAM.exists():
        pytest.skip("wheelscope is not built; run `make build`")
    return run_valid


@pytest.fixture(scope="session")
def ask() -> Iterator[Ask]:
    """Returns a function that asks wheelscope's text readers a question; see questions.cc."""
    if not QUESTIONS.exists():
        pytest.skip("the tests of wheelscope are not built; run `make test`")
    with subprocess.Popen(
        [QUESTIONS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:

        def question(name: str, **asked: object) -> Any:
            assert process.stdin
            assert process.stdout
            process.stdin.write(json.dumps({"ask": name, **asked}) + "\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())

        yield question


@pytest.fixture
def index() -> Iterator[Index]:
    with package_index.serve() as served:
        yield served


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return sample_wheels.library(tmp_path_factory.mktemp("module"))


@pytest.fixture
def fit(tmp_path: Path) -> Fit:
    """Returns a function that runs fit in a home of its own; it returns the answers, the exit code
    and the errors."""

    def run(*arguments: str | Path, **environment: str) -> tuple[Any, int, str]:
        settings = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PIP_", "UV_", "XDG_"))
        }
        settings |= {"HOME": str(tmp_path), **environment}
        words = [PROGRAM, "fit", "--json", "--timeout", "2", *arguments]
        if not {"--machine", "--python"} & set(arguments):
            words += ["--python", sys.executable]
        done = subprocess.run(
            [str(word) for word in words], capture_output=True, text=True, env=settings, timeout=100
        )
        assert done.returncode in (0, 1, 3), done.stderr
        document = valid(json.loads(done.stdout))
        return document.get("fit") or document["fit_set"], done.returncode, done.stderr

    return run

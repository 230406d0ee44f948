"""Fixtures: the built programs, a package index, and a library for it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import package_index
import pytest
import sample_wheels
from package_index import Index
from program import PROGRAM, QUESTIONS, Ask, Fit, valid, virtual_environment


@pytest.fixture(scope="session", autouse=True)
def built() -> None:
    if not PROGRAM.exists():
        pytest.skip("wheelscope is not built; run `make build`")


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
def settings(tmp_path: Path) -> dict[str, str]:
    """Returns the variables of a user with an empty home, who has configured no index."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PIP_", "UV_", "XDG_"))}
    return kept | {"HOME": str(tmp_path)}


@pytest.fixture
def bare_fit(settings: dict[str, str]) -> Fit:
    """Returns a function that runs fit; it returns the answers, the exit code and the errors."""

    def run(*arguments: str | Path, **environment: str) -> tuple[Any, int, str]:
        words = [PROGRAM, "fit", "--json", "--timeout", "2", *arguments]
        if not {"--machine", "--python"} & set(arguments):
            words += ["--python", sys.executable]
        there = settings | environment
        done = subprocess.run(words, capture_output=True, text=True, env=there, timeout=100)
        assert done.returncode in (0, 1, 3), done.stderr
        document = valid(json.loads(done.stdout))
        answer = document["fit" if "fit" in document else "fit_set"]
        return answer, done.returncode, done.stderr

    return run


@pytest.fixture
def fit(bare_fit: Fit, index: Index) -> Fit:
    """Returns the same with the index of the test."""
    return partial(bare_fit, "--index", index.simple)


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """Returns a virtual environment without packages."""
    return virtual_environment(tmp_path / "an env")

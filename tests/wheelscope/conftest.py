"""The built programs as fixtures."""

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from program import PROGRAM, QUESTIONS, Ask, Scope, run_json


@pytest.fixture(scope="session")
def scope() -> Scope:
    if not PROGRAM.exists():
        pytest.skip("wheelscope is not built; run `make wheelscope`")
    return run_json


@pytest.fixture(scope="session")
def ask() -> Iterator[Ask]:
    """Asks wheelscope's readers of texts a question; see questions.cc."""
    if not QUESTIONS.exists():
        pytest.skip("the tests of wheelscope are not built; run `make test-wheelscope`")
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

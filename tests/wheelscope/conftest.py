"""The built program as a fixture."""

import pytest
from program import PROGRAM, Scope, run_json


@pytest.fixture(scope="session")
def scope() -> Scope:
    if not PROGRAM.exists():
        pytest.skip("wheelscope is not built; run `make wheelscope`")
    return run_json

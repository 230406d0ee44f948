"""The demo extension, built once for the CPU, for all tests that run it."""

from pathlib import Path
from typing import Any

import pytest
from clone import NAME, install, make_clone


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone in a folder with a space in its name, its library beside the package."""
    clone = make_clone(tmp_path_factory.mktemp("of kernels") / "my clone")
    install(clone)
    return clone


@pytest.fixture
def extension(built: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The demo, importable here, as the benchmarks see it."""
    from opwright.bench import measure

    monkeypatch.syspath_prepend(str(built))
    return measure.find_extension(NAME)


collect_ignore = ["demo"]  # a project of its own, whose tests run where it is built

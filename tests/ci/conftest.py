"""What the pipeline's tests share: a release in a wheelhouse of its own."""

from pathlib import Path

import pytest

from ci.progress import Display
from ci.release import Release

collect_ignore = ["demo"]  # another project, with tests of its own


@pytest.fixture
def release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Release:
    """A release in an empty wheelhouse."""
    monkeypatch.setenv("WHEELHOUSE", str(tmp_path / "wheelhouse"))
    return Release(Display(verbose=True))

"""What the pipeline's tests share: a release in a wheelhouse of its own, and a real index."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ci import index
from ci.index import Index
from ci.progress import Display
from ci.release import Release

collect_ignore = ["demo"]  # another project, with tests of its own


@pytest.fixture
def release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Release:
    """A release in an empty wheelhouse."""
    monkeypatch.setenv("WHEELHOUSE", str(tmp_path / "wheelhouse"))
    return Release(Display(verbose=True))


@pytest.fixture(scope="module")
def new_index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Index]]:
    """Makes an empty index of that name in a real devpi."""
    folder = tmp_path_factory.mktemp("devpi")
    password = index._initialised(folder / "index", folder / "log")
    with index._server(folder / "index", folder / "log") as url:

        def make(name: str) -> Index:
            index._make_index(url, name, password)
            place = f"{url}/{index.USER}/{name}/"
            return Index(name, place, f"{place}+simple/", password)

        yield make

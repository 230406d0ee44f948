"""Tests a worker's files: each is whole and right or missing, and together they never exceed their limit."""

import hashlib
import os
from pathlib import Path

import pytest
from wheelyard.run.cluster.store import KEPT_SECONDS, Store, Wrong, trim


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "files")


def test_a_file_arrives_in_pieces(store: Store, tmp_path: Path) -> None:
    name = digest(b"onetwo")
    store.receive(name, 0, b"one", False)
    assert store.missing([name, name]) == [name]
    store.receive(name, 3, b"two", True)
    assert store.missing([name]) == []
    assert store.copy(name, tmp_path / "deep/copy")
    assert (tmp_path / "deep/copy").read_bytes() == store.read(name, 0) == b"onetwo"


def test_altered_on_its_way_it_is_not_there(store: Store) -> None:
    name = digest(b"right")
    with pytest.raises(Wrong, match="was altered on its way"):
        store.receive(name, 0, b"wrong", True)
    assert store.missing([name]) == [name]


def test_a_file_that_went_bad_is_dropped(store: Store, tmp_path: Path) -> None:
    (tmp_path / "new").write_bytes(b"good")
    name, size = store.take(tmp_path / "new")
    assert size == 4
    store.path(name).write_bytes(b"rot")
    assert not store.copy(name, tmp_path / "copy")
    assert store.missing([name]) == [name]


@pytest.mark.parametrize("name", ["../../etc/passwd", "abc", "A" * 64])
def test_a_name_that_is_no_digest(store: Store, name: str) -> None:
    with pytest.raises(Wrong, match="is not a sha256"):
        store.receive(name, 0, b"", True)


def test_the_oldest_go_first_and_what_was_just_used_stays(tmp_path: Path) -> None:
    for number, age in enumerate((3, 2, 0)):
        file = tmp_path / str(number)
        file.write_bytes(b"x" * 100)
        used = file.stat().st_mtime - age * KEPT_SECONDS
        os.utime(file, (used, used))
    trim(tmp_path, 250)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["1", "2"]
    trim(tmp_path, 0)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["2"]

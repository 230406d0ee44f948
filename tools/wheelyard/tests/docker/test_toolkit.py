"""`wheelyard toolkit`: a CUDA toolkit from PyPI in a folder."""

from pathlib import Path

from repository import wheelyard
from wheelyard.tools.images import FOLDER


def test_a_version_without_a_lock_is_refused_with_those_there_are(tmp_path: Path) -> None:
    done = wheelyard(tmp_path, "toolkit", "--cuda", "1.0", str(tmp_path / "a folder"))
    assert done.returncode == 1
    assert done.stderr == "error: there is no toolkit 1.0; choose one of 12.9, 13.0, 13.2\n"
    assert not (tmp_path / "a folder").exists()


def test_a_folder_that_is_complete_is_left_alone(tmp_path: Path) -> None:
    """Without this, every `make` would download the toolkit again."""
    lock = FOLDER / "toolkits/13.0.lock"
    (tmp_path / ".complete").write_text(lock.read_text() + "aarch64")
    done = wheelyard(tmp_path, "toolkit", "--cuda", "13.0", "--target", "aarch64", str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    assert [file.name for file in tmp_path.iterdir()] == [".complete"]

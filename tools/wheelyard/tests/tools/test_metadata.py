"""Tests an sdist's metadata: what an index or pip would refuse at the end is refused before anything is compiled."""

import io
import tarfile
from pathlib import Path

import pytest
from wheelyard.problem import Problem
from wheelyard.tools import metadata

GOOD = "Metadata-Version: 2.1\nName: Demo.Ext\nVersion: 1.0\nRequires-Python: >=3.10,<3.14\n"
README = "Description-Content-Type: text/markdown\n\n# Demo\n"


def sdist(folder: Path, fields: str) -> Path:
    file = folder / "demo_ext-1.0.tar.gz"
    with tarfile.open(file, "w:gz") as archive:
        for name, text in {"PKG-INFO": fields, "setup.py": ""}.items():
            entry = tarfile.TarInfo(f"demo_ext-1.0/{name}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    return file


def check(folder: Path, fields: str, name: str = "demo-ext", **levels: str) -> None:
    metadata.check_sdist(sdist(folder, fields), name, ["3.11", "3.13t"], levels, folder / "log")


def test_a_good_one_passes(tmp_path: Path) -> None:
    check(tmp_path, GOOD + README, twine="error")


def test_a_missing_readme_is_an_error_only_where_the_policy_says_so(tmp_path: Path) -> None:
    """Many projects on PyPI have none."""
    check(tmp_path, GOOD)
    with pytest.raises(Problem, match=r"name its README in pyproject.toml(?s:.*)\[levels\] twine"):
        check(tmp_path, GOOD, twine="error")


@pytest.mark.parametrize(
    ("fields", "name", "words"),
    [
        (GOOD.replace("<3.14", "<3.13"), "demo-ext", "has wheels for 3.13t; take them out"),
        (GOOD, "other", "the build calls the project Demo.Ext"),
        (GOOD.replace("1.0", "one"), "demo-ext", "twine check"),
    ],
)
def test_others_are_refused(tmp_path: Path, fields: str, name: str, words: str) -> None:
    with pytest.raises(Problem, match=words):
        check(tmp_path, fields, name)

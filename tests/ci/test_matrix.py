"""ci/matrix.toml is read strictly: a bad key names its line and what is known."""

from pathlib import Path

import pytest

from ci import matrix
from ci.errors import Problem


def edited(tmp_path: Path, old: str, new: str) -> Path:
    text = matrix.FILE.read_text()
    assert old in text
    file = tmp_path / "matrix.toml"
    file.write_text(text.replace(old, new, 1))
    return file


def test_the_committed_file_is_sound() -> None:
    facts = matrix.load()
    assert set(facts.arch) == {"x86_64", "aarch64"}
    assert facts.torch["2.10"].release == "2.10.0"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('compiler = "nvcc"', 'compilr = "nvcc"', "unknown key `compilr` in toolkit.13.0"),
        ("[extension]", "[extention]", "unknown key `extention` in the file"),
        ('stable_abi = "2.10"', "stable_abi = 2.10", "must be a str, not 2.1"),
        ('stable_abi = "2.10"', 'stable_abi = "2.9"', "names `2.9`; known: 2.10, 2.11"),
        ('"2.10", python = "3.11" }', '"2.10", python = "3.15" }', "names `3.15`"),
        ('release = "2.15.0"\n', "", "torch.2.15 lacks the key `release`"),
    ],
)
def test_a_bad_key_names_its_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    file = edited(tmp_path, old, new)
    with pytest.raises(Problem) as caught:
        matrix.load(file)
    assert message in str(caught.value)
    line = int(str(caught.value).split(":")[1])
    first_changed = matrix.FILE.read_text()[: matrix.FILE.read_text().index(old)].count("\n") + 1
    assert abs(line - first_changed) <= 5


def test_not_toml(tmp_path: Path) -> None:
    with pytest.raises(Problem, match=r"not valid TOML.*line 12"):
        matrix.load(edited(tmp_path, "[arch.aarch64]", "[arch.aarch64"))

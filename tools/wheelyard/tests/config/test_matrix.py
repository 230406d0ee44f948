"""Tests that ci/matrix.toml is read strictly: an error names its line and suggests a fix, and known values may be left
out."""

from pathlib import Path

import pytest
from repository import ROOT
from wheelyard.config import matrix
from wheelyard.problem import Problem

FILE = ROOT / matrix.FILE
URL, SHA = "https://host.example", "0" * 64
TWICE = f'{{ url = "{URL}/x/a%20b.tgz?y=z", sha256 = "{SHA}" }}'


def edited(tmp_path: Path, old: str, new: str) -> Path:
    text = FILE.read_text()
    assert old in text
    file = tmp_path / "matrix.toml"
    file.write_text(text.replace(old, new, 1))
    return file


def test_the_committed_file_is_sound() -> None:
    facts = matrix.load(FILE)
    assert set(facts.arch) == {"x86_64", "aarch64"}
    assert facts.torch["2.10"].release == "2.10.0"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('compiler = "nvcc"', 'compilr = "nvcc"', "unknown key `compilr` in toolkit.13.0; did you mean `compiler`?"),
        ("[strategy]", "[stratgy]", "unknown key `stratgy` in the file; did you mean `strategy`?"),
        ('default = "universal"', 'default = "all"', "is `all`; it is one of: universal, abi3, each"),
        ('compiler = "nvcc"', "compiler = 13.0", "toolkit.13.0.compiler must be a string, not 13.0"),
        ('torch = "2.10" }', 'torch = "2.9" }', "names `2.9`; known: 2.10, 2.11"),
        ('"2.10", python = "3.11" }', '"2.10", python = "3.15" }', "names `3.15`"),
        ("torch_dependencies = false", "torch_dependencies = 0", "must be true or false, not 0"),
        ("[python]\nversions", "[python]\nversions = []\n#", "python.versions is empty; leave it out"),
        ("[python]\nversions", "[python]\nversions = 3.11\n#", "python.versions must be a list, not 3.11"),
        ('OPWRIGHT_TARGET = "{arch}"', 'OPWRIGHT_TARGET = "{foo}"', "OPWRIGHT_TARGET names {foo}; it may name {arch}"),
        ('OPWRIGHT_TARGET = "{arch}"', 'OPWRIGHT_TARGET = "a}"', "OPWRIGHT_TARGET has a single brace"),
        ("[smoke]", '[smoke]\nchecks = [{ call = "x", reference = "x" }]', "lacks the key `name`: The name of"),
        ("[build]\n", f'[build]\ndownloads = [{{ url = "{URL}/a.tgz", sha256 = "x" }}]\n', "is `x`; it has 64 digits"),
        ("[build]\n", f'[build]\ndownloads = [{{ url = "{URL}/", sha256 = "{SHA}" }}]\n', "needs a file's name"),
        ("[build]\n", f'[build]\ndownloads = [{{ url = "file:///a", sha256 = "{SHA}" }}]\n', "`file:///a` is not an"),
        ("[build]\n", f'[build]\ndownloads = [{TWICE}, {TWICE}]\n', "two files are named a b.tgz; give one another"),
        ('"13.0", "cpu"]', '"cu130", "cpu"]', 'names `cu130`; write it like 13.0, or "cpu"'),
    ],
)  # fmt: skip
def test_a_bad_key_names_its_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    file = edited(tmp_path, old, new)
    with pytest.raises(Problem) as caught:
        matrix.load(file)
    assert message in str(caught.value)
    line = int(str(caught.value).split(":")[1])
    first_changed = FILE.read_text()[: FILE.read_text().index(old)].count("\n") + 1
    assert abs(line - first_changed) <= 5


def test_not_toml(tmp_path: Path) -> None:
    with pytest.raises(Problem, match=r"matrix\.toml is not valid TOML.*line \d"):
        matrix.load(edited(tmp_path, "[arch.aarch64]", "[arch.aarch64"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"# \xe4\n", "matrix.toml:1: is not UTF-8"),
        ("# ä\n".encode("utf-16"), "matrix.toml:1: is not UTF-8"),
        (b"\xef\xbb\xbf[build]\n", "matrix.toml:1: starts with a byte order mark"),
        (b"a = " + b"9" * 5000, "matrix.toml is not valid TOML: Exceeds the limit"),
        (b"a = " + b"[" * 5000, "matrix.toml is not valid TOML: maximum recursion"),
        (b'arch = "' + b"x" * 9000 + b'"\ntorch = {}\n', "arch must be a table, not 'xxx"),
    ],
)
def test_a_file_that_no_reader_takes(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "matrix.toml"
    file.write_bytes(content)
    with pytest.raises(Problem) as caught:
        matrix.load(file)
    assert message in str(caught.value)
    assert len(str(caught.value)) < 300


def test_a_missing_file_names_init(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="`wheelyard init` writes one"):
        matrix.load(tmp_path / "matrix.toml")


SHORT = '[arch.x86_64]\n[torch."2.14"]\ncuda = ["13.0"]\n[torch."2.15"]\n[python]\nversions = ["3.11", "3.13"]\n'


def test_what_is_known_need_not_be_said(tmp_path: Path) -> None:
    file = tmp_path / "matrix.toml"
    file.write_text(SHORT)
    facts = matrix.load(file)
    assert facts.arch["x86_64"].runner == "ubuntu-24.04"
    assert facts.torch["2.14"].release == "2.14.1"
    assert facts.torch["2.14"].cuda == ["13.0"]
    assert facts.torch["2.14"].pythons == ["3.11", "3.13"]
    assert facts.python.debian["3.13"] == "trixie"
    assert "13.0" in facts.toolkit


def test_pythons_that_are_not_served_are_left_out(tmp_path: Path) -> None:
    """`wheelyard torch 2.7` prints every Python that this torch has wheels for."""
    file = tmp_path / "matrix.toml"
    table = '[torch."2.7"]\nrelease = "2.7.1"\npypi = {}\ncuda = ["12.6"]\npythons = '
    file.write_text(f'{SHORT}{table}["3.10", "3.11", "3.13", "3.13t"]\n')
    assert matrix.load(file).torch["2.7"].pythons == ["3.11", "3.13"]
    file.write_text(f'{SHORT}{table}["3.11", "3.31"]\n')
    with pytest.raises(Problem, match=r"torch\.2\.7\.pythons names `3\.31`"):
        matrix.load(file)


def test_a_torch_that_nobody_knows_must_be_told_whole(tmp_path: Path) -> None:
    file = tmp_path / "matrix.toml"
    file.write_text(SHORT + '[torch."9.9"]\n')
    with pytest.raises(
        Problem, match=r"does not know torch\.9\.9; give its `release`: The release to build"
    ):
        matrix.load(file)

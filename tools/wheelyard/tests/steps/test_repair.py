"""Tests which libraries repair leaves to torch and to a wheel's requirements."""

import subprocess
import sys
from pathlib import Path

import pytest
from demo_wheel import make_wheel
from wheelyard.steps import repair
from wheelyard.tools import wheelfile


@pytest.mark.parametrize(
    ("needed", "expected"),
    [(["libc10.so", "libgomp.so.1"], True), (["libtorch.so"], True), (["libgomp.so.1"], False)],
)
def test_openmp_is_torchs_only_where_torch_is_linked(needed: list[str], expected: bool) -> None:
    """A wheel that never loads torch must carry its OpenMP; one that does would have two."""
    assert repair.needs_torch({"elf": [{"needed": ["libc.so.6"]}, {"needed": needed}]}) == expected


def test_libraries_of_a_requirement_are_excluded(tmp_path: Path) -> None:
    """Those installed under exactly that name are excluded; a package that is not installed has none."""
    package = tmp_path / "theirs-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (package / "RECORD").write_text("theirs/lib/libtheirs.so.2,,\ntheirs/so.py,,\n")
    (tmp_path / "theirs/lib").mkdir(parents=True)
    for name in ("lib/libtheirs.so.2", "so.py"):  # later Pythons list only files that exist
        (tmp_path / "theirs" / name).touch()
    words = ["-c", "import sys; print(sys.argv[1:])"]
    done = subprocess.run(
        [sys.executable, "-c", repair.PROGRAM, "theirs nobody", *words],
        env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == "['--exclude=libtheirs.so.2']"


def test_requirements_of_extras_are_not_those_of_everyone(tmp_path: Path) -> None:
    text = "x\nRequires-Dist: Zope.Interface>=5\nRequires-Dist: tests; extra == 'dev'\nRequires-Dist: torch"
    assert wheelfile.requirements(make_wheel(tmp_path, text=text)) == ["zope-interface", "torch"]

"""Tests the lists of packages in images, and that a difference from the kept list is noticed."""

import subprocess
import sys
from pathlib import Path

import pytest
from wheelyard.tools import packages

LIST = "libc6:amd64=2.36-9+deb12u10 libssl3:amd64=3.0.17-1\ntorch==2.10.0@0123456789abcdef\n"


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """Returns a release folder with the list of one image, equal to the kept one."""
    for folder in (tmp_path / "build/release/packages", tmp_path / packages.KEPT / "x86_64"):
        folder.mkdir(parents=True)
        (folder / "verify-3.11.txt").write_text(LIST)
    return tmp_path / "build/release"


def said(release: Path) -> list[str]:
    return packages.not_as_kept(release.parents[1], release, "x86_64")


def test_the_same_packages(release: Path) -> None:
    assert said(release) == []


@pytest.mark.parametrize(
    ("old", "new", "change"),
    [
        ("3.0.17-1", "3.0.18-1", "libssl3:amd64 3.0.17-1 -> 3.0.18-1"),
        ("0123456789abcdef", "f" * 16, f"torch 2.10.0@0123456789abcdef -> 2.10.0@{'f' * 16}"),
        ("libssl3:amd64=3.0.17-1", "", "libssl3:amd64 3.0.17-1 -> none"),
        ("torch==", "numpy==2.4@0\ntorch==", "numpy none -> 2.4@0"),
    ],
)
def test_a_difference_is_said_with_what_to_type(
    release: Path, old: str, new: str, change: str
) -> None:
    (release / "packages/verify-3.11.txt").write_text(LIST.replace(old, new))
    difference, advice = said(release)
    assert difference == (
        f"the image verify-3.11 has other packages than ci/packages/x86_64/verify-3.11.txt says: {change}"
    )
    command = advice.partition(": ")[2].partition(", and")[0]
    subprocess.run(["sh", "-c", command], check=True)
    assert said(release) == []


def test_many_differences_are_counted(release: Path) -> None:
    more = "".join(f"package{number}==1@0 " for number in range(10))
    (release / "packages/verify-3.11.txt").write_text(LIST + more)
    assert said(release)[0].endswith(", package3 none -> 1@0 and 6 more")


def test_an_image_without_a_kept_list(release: Path) -> None:
    (release / "packages/build-3.11.txt").write_text(LIST)
    assert (
        said(release)[0] == "ci/packages/x86_64 has no list of the packages in the image build-3.11"
    )


def test_a_project_that_keeps_none_is_told_nothing(release: Path) -> None:
    (release / "packages/verify-3.11.txt").write_text("")
    assert packages.not_as_kept(release.parent, release, "aarch64") == []


def test_a_python_package_with_other_files_is_another(tmp_path: Path) -> None:
    """The version is the same. Files that an installer adds make no difference."""
    info = tmp_path / "demo-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n")
    (tmp_path / "demo.py").touch()  # later Pythons list only files that exist

    def listed(record: str) -> str:
        (info / "RECORD").write_text(record)
        program = f"import sys; sys.path[:] = [p for p in sys.path if 'site-packages' not in p]\n{packages.LIST}"
        shown = subprocess.run(
            [sys.executable, "-I", "-c", f"import sys; sys.path.append({str(tmp_path)!r})\n{program}"],
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        (word,) = [word for word in shown.split() if word.startswith("demo==1.0@")]
        return word

    plain = listed("demo.py,sha256=abc,1\n")
    assert listed("demo.py,sha256=abd,1\n") != plain
    by_another = (
        "demo.py,sha256=abc,1\ndemo-1.0.dist-info/INSTALLER,sha256=x,3\n../../bin/demo,sha256=y,3\n"
    )
    assert listed(by_another) == plain

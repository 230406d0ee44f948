"""Tests that the tools are published only as they were made: every wheel, no other, each with the bytes that its job
stated."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from wheelyard.core.digest import sha256

ROOT = Path(__file__).resolve().parents[3]


def check(folder: Path, digests: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tools.release.publish", "none", folder]
    environment = {**os.environ, "DIGESTS": digests}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("opwright-0.1.0", "wheelyard-0.1.0"):
        with zipfile.ZipFile(tmp_path / f"{name}-py3-none-any.whl", "w") as wheel:
            wheel.writestr(f"{name}.dist-info/METADATA", f"Name: {name}\n")
    return tmp_path


def told(folder: Path) -> str:
    return " ".join(f"{sha256(wheel)} {wheel.name}" for wheel in sorted(folder.iterdir()))


def test_what_was_made_passes(folder: Path) -> None:
    done = check(folder, told(folder))
    assert (done.returncode, done.stderr) == (0, "")


def test_anything_else_is_refused(folder: Path) -> None:
    digests = told(folder)
    second = max(folder.iterdir())
    assert "must hold the sha256 and name" in check(folder, "").stderr
    assert "must hold the sha256 and name" in check(folder, f"{digests} {digests}").stderr
    second.write_text("other bytes")
    assert f"error: {second.name} is " in check(folder, digests).stderr
    second.unlink()
    assert f"error: {second.name} is missing here" in check(folder, digests).stderr
    (folder / "added-1.0-py3-none-any.whl").write_text("more")
    assert "error: added-1.0-py3-none-any.whl is " in check(folder, digests).stderr
    assert "and unknown where the wheels were made" in check(folder, digests).stderr


def test_the_release_lists_every_tool(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    release = tmp_path_factory.mktemp("release")
    command = [sys.executable, "-m", "tools.release.publish", "release", folder]
    environment = {**os.environ, "RELEASE_FOLDER": str(release)}
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    page = (release / "simple/index.html").read_text()
    for wheel in folder.iterdir():
        assert (release / "tools" / wheel.name).read_bytes() == wheel.read_bytes()
        assert f'href="{wheel.name.split("-")[0]}/"' in page

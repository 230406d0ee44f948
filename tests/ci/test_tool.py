"""The tools as others get them: wheels that install into an empty environment, with all they need inside."""

import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
from repository import ROOT

pytestmark = pytest.mark.skipif(
    not (ROOT / "build/wheelscope").exists(), reason="needs `make wheelscope`"
)


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """What `make tool-wheels` makes."""
    folder = tmp_path_factory.mktemp("tools")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    sources = [ROOT / "ci", ROOT / "csrc/wheelscope"]
    subprocess.run(
        [*command, "--wheel-dir", folder, *sources], check=True, env={**os.environ, "PATH": path}
    )
    for source in sources:  # setuptools would take old files from there the next time
        shutil.rmtree(source / "build", ignore_errors=True)
    return sorted(folder.iterdir())


def test_wheelyard_carries_the_images_recipes(wheels: list[Path]) -> None:
    assert wheels[1].name == "wheelyard-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheels[1]) as archive:
        names = set(archive.namelist())
    for file in (ROOT / "docker").rglob("*"):
        if file.is_file() and "__pycache__" not in file.parts:
            assert f"wheelyard/docker/{file.relative_to(ROOT / 'docker')}" in names
    missing = [
        str(file.relative_to(ROOT / "ci"))
        for file in (ROOT / "ci/wheelyard").rglob("*")
        if file.suffix in (".py", ".toml", ".html")
        and str(file.relative_to(ROOT / "ci")) not in names
    ]
    assert missing == []


def test_they_run_in_an_empty_environment(wheels: list[Path], tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    programs = tmp_path / "venv/bin"
    install = [programs / "python", "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*install, *wheels], check=True)
    said = subprocess.run([programs / "wheelscope", "--help"], capture_output=True, text=True)
    assert "cover" in said.stdout
    look = "import wheelyard.core.digest as d; print(len(d.code('wheelyard.steps.build')))"
    said = subprocess.run([programs / "python", "-c", look], capture_output=True, text=True)
    assert said.stdout.strip() == "64", said.stderr

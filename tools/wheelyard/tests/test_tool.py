"""Tests the tools as others get them: wheels that install into an empty environment, with all they need inside."""

import subprocess
import venv
import zipfile
from pathlib import Path

import pytest
from repository import ROOT, TOOL
from tools.release import wheels as tool_wheels

pytestmark = pytest.mark.skipif(
    not (ROOT / "build/bin/wheelscope").exists(), reason="needs `make wheelscope`"
)


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return tool_wheels.make(tmp_path_factory.mktemp("tools"))


def test_wheelyard_carries_the_images_recipes(wheels: dict[str, Path]) -> None:
    assert wheels["wheelyard"].name == "wheelyard-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheels["wheelyard"]) as archive:
        names = set(archive.namelist())
    for file in (TOOL / "wheelyard/docker").rglob("*"):
        if file.is_file() and "__pycache__" not in file.parts:
            assert f"wheelyard/docker/{file.relative_to(TOOL / 'wheelyard/docker')}" in names
    missing = [
        str(file.relative_to(TOOL))
        for file in (TOOL / "wheelyard").rglob("*")
        if file.suffix in (".py", ".toml", ".html") and str(file.relative_to(TOOL)) not in names
    ]
    assert missing == []


def test_the_same_sources_give_the_same_bytes(wheels: dict[str, Path], tmp_path: Path) -> None:
    again = tool_wheels.make(tmp_path)
    for name, wheel in wheels.items():
        assert again[name].read_bytes() == wheel.read_bytes()


def test_they_run_in_an_empty_environment(wheels: dict[str, Path], tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    programs = tmp_path / "venv/bin"
    install = [programs / "python", "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*install, *wheels.values()], check=True)
    said = subprocess.run([programs / "wheelscope", "--help"], capture_output=True, text=True)
    assert "cover" in said.stdout
    look = "import wheelyard.core.digest as d; print(len(d.code('wheelyard.steps.build')))"
    said = subprocess.run([programs / "python", "-c", look], capture_output=True, text=True)
    assert said.stdout.strip() == "64", said.stderr

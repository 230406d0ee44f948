"""The wrapper between clang and CUDA 13's fatbinary: older and newer clangs speak to it in different words."""

import shutil
import subprocess
from pathlib import Path

import pytest

WRAPPER = Path(__file__).parents[2] / "wheelyard/docker/toolkits/fatbinary.sh"
OLD = ["--image=profile=sm_80,file=a.cubin", "--image=profile=compute_90a,file=a.ptx"]
NEW = ["--image3=kind=elf,sm=80,file=a.cubin", "--image3=kind=ptx,sm=90a,file=a.ptx"]


@pytest.fixture
def toolkit(tmp_path: Path) -> Path:
    """A folder with the wrapper, and programs that print what they are told."""
    shutil.copy(WRAPPER, tmp_path / "fatbinary")
    for name in ("fatbinary-13", "ptxas"):
        (tmp_path / name).write_text(f'#!/bin/sh\nprintf "%s\\n" {name} "$@"\n')
        (tmp_path / name).chmod(0o755)
    return tmp_path


def told(toolkit: Path, *words: str) -> list[str]:
    done = subprocess.run(
        ["bash", toolkit / "fatbinary", *words], capture_output=True, text=True, check=True
    )
    return done.stdout.split()


@pytest.mark.parametrize("images", [OLD, NEW], ids=["image", "image3"])
def test_fatbinary_is_told_in_its_own_words(toolkit: Path, images: list[str]) -> None:
    words = told(toolkit, "-64", "--create", "out", *images)
    assert words == [
        "fatbinary-13",
        "--compress-all",
        "--compress-mode=size",
        "-64",
        "--create",
        "out",
        *NEW,
    ]


@pytest.mark.parametrize("images", [OLD, NEW], ids=["image", "image3"])
def test_native_code_for_newer_gpus_is_made_from_the_newest_ptx(
    toolkit: Path, images: list[str]
) -> None:
    older = "--image=profile=compute_70,file=old.ptx"
    words = told(toolkit, *images, older, "--assemble=sm_100")
    assembled = words[: words.index("fatbinary-13")]
    assert assembled[0] == "ptxas"
    assert "--gpu-name=sm_100" in assembled
    assert assembled[-1] == "a.ptx"
    assert words[-1].startswith("--image3=kind=elf,sm=100,file=")


def test_without_ptx_nothing_can_be_assembled(toolkit: Path) -> None:
    command = ["bash", toolkit / "fatbinary", NEW[0], "--assemble=sm_100"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert "--assemble needs PTX" in done.stderr

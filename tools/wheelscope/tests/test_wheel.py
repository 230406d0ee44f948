"""The wheel of wheelscope: sound by its own judgement, and complete."""

import platform
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from program import PROGRAM, ROOT, Scope

TAGS = ("manylinux2014", "manylinux_2_17", "musllinux_1_1")
SHARED = {
    "bin/wheelscope",
    "share/man/man1/wheelscope.1",
    "share/bash-completion/completions/wheelscope",
    "share/zsh/site-functions/_wheelscope",
    "share/fish/vendor_completions.d/wheelscope.fish",
}


@pytest.mark.skipif("build/bin" not in str(PROGRAM), reason="is built as `make build` builds")
def test_the_wheel_is_sound_and_complete(scope: Scope, tmp_path: Path) -> None:
    """One test, because two simultaneous builds would disturb each other."""
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    folder = f"--config-settings=build-dir={ROOT / 'build/wheelscope'}"
    subprocess.run([*build, folder, "--wheel-dir", tmp_path, ROOT], check=True)
    (wheel,) = tmp_path.iterdir()
    names = ".".join(f"{tag}_{platform.machine()}" for tag in TAGS)
    assert wheel.name.endswith(f"-py3-none-{names}.whl")
    assert scope("check", "--policy", ROOT / "policy.toml", wheel)["items"][0]["findings"] == []
    with zipfile.ZipFile(wheel) as archive:
        members = {name.partition(".data/data/")[2]: name for name in archive.namelist()}
        assert members.keys() >= SHARED
        assert archive.read(members["share/man/man1/wheelscope.1"]).startswith(b".TH")

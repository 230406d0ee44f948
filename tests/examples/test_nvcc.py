"""Tests that the one nvcc line of docs/inside.md builds the standalone program, from the sources and examples/nvcc
alone."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

opwright = pytest.importorskip("opwright", reason="needs opwright, which `make install` brings")
ROOT = Path(__file__).parents[2]
LINE = re.search(
    r"^nvcc -O3 .*?main\.cu [^\n]*$", (ROOT / "docs/inside.md").read_text(), re.M | re.S
)


@pytest.mark.skipif(not shutil.which("nvcc"), reason="needs nvcc")
def test_one_line_builds_the_standalone_program(tmp_path: Path):
    assert LINE
    for name in ("csrc", "examples"):
        (tmp_path / name).symlink_to(ROOT / name)
    engine = {"ENGINE": str(Path(opwright.__file__).parent)}
    subprocess.run(["bash", "-c", LINE[0]], cwd=tmp_path, env=os.environ | engine, check=True)
    done = subprocess.run([tmp_path / "standalone", "--check"], capture_output=True, text=True)
    if Path("/dev/nvidia0").exists():
        assert "checks, 0 mismatches" in done.stdout
    else:
        assert "found no NVIDIA driver (libcuda.so.1); install one" in done.stderr

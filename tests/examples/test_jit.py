"""Tests the JIT example: right results on the CPU and on a GPU, and a build folder that is kept."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

pytest.importorskip("opwright", reason="needs opwright, which `make install` brings")
ROOT = Path(__file__).parents[2]
CHECK = """
import sys, torch
from pathlib import Path
sys.path.insert(0, {examples!r})
import load
load.load(with_cuda={device!r} == "cuda", build=Path({build!r}))
ops = torch.ops.cuda_ext_jit
for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.int64, torch.complex128):
    a, b = (torch.randn(40, 25, device={device!r}).mul(100).to(dtype) for _ in range(2))
    for add in (ops.my_add, ops.my_fast_add):
        assert torch.equal(add(a, b), a + b), dtype
        assert torch.equal(add(a[:, ::2], b[0, ::2]), a[:, ::2] + b[0, ::2]), dtype
"""


def check(device: str, build: Path) -> None:
    code = CHECK.format(examples=str(ROOT / "examples/jit"), device=device, build=str(build))
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # where ninja is
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "device",
    [
        "cpu",
        pytest.param(
            "cuda",
            marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU"),
        ),
    ],
)
@pytest.mark.skipif(
    " " in torch.__file__, reason="torch links with libraries whose path has no space"
)
def test_right_results_and_a_second_process_compiles_nothing(device: str, tmp_path: Path):
    check(device, tmp_path)
    folder = tmp_path / f"jit-{device}"
    first = {file: file.stat().st_mtime_ns for file in folder.glob("*.o")}
    assert len(first) == (8 if device == "cuda" else 5)
    check(device, tmp_path)
    assert {file: file.stat().st_mtime_ns for file in folder.glob("*.o")} == first

"""The make targets that look inside: PTX of a source, PTX and SASS of the library, its symbols."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import cuda_ext_example

ROOT = Path(__file__).parents[1]
LIBRARY = cuda_ext_example.library_path()
INSIDE = ROOT / "build/inside"

pytestmark = pytest.mark.skipif(
    not (shutil.which("make") and (ROOT / ".venv").is_dir()),
    reason="needs make and the .venv of `make test-env`",
)


def make(*arguments):
    environment = {name: value for name, value in os.environ.items() if name != "MAKEFLAGS"}
    command = ["make", "--silent", *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True
    ).stdout


@pytest.mark.skipif(not shutil.which("nvcc"), reason="needs nvcc")
def test_ptx_of_a_source():
    assert make("ptx", "OP=add", "GPU=8.0").endswith("add.ptx: 55 kernels\n")
    ptx = (INSIDE / "add.ptx").read_text()
    assert ".target sm_80" in ptx
    assert "add.f32" in ptx


def test_ptx_and_sass_of_the_library():
    build = cuda_ext_example.build_info()
    if not build["cuda"]:
        pytest.skip("this build has no CUDA code")
    listed = make("inside", f"LIBRARY={LIBRARY}")
    for target in build["sass"]:
        assert f".sm_{target.replace('.', '')}.cubin" in listed
    sass = (INSIDE / LIBRARY.name).with_suffix(".sass").read_text()
    assert "dense_kernel<float, 2, opwright::my_fast_add::Function<float>" in sass
    assert "LDG.E.128" in sass
    ptx = (INSIDE / LIBRARY.name).with_suffix(".ptx").read_text()
    assert ("ld.global.v4" in ptx) == bool(build["ptx"])


def test_symbols_of_the_library():
    symbols = make("symbols", f"LIBRARY={LIBRARY}")
    assert "needs libtorch.so\n" in symbols
    assert " U aoti_torch_get_sizes\n" in symbols
    assert " w aoti_torch_get_current_cuda_stream\n" in symbols

"""The demo extension, built for the CPU and run: kernels of one's own, and what mistakes look like."""

import re
from pathlib import Path

import pytest
from clone import NAME, build, copy_of, install, make_clone, python, start_build
from opwright.build.toolchain import cuda_home


def said(clone: Path, code: str) -> str:
    done = python(clone, "-c", f"import torch, demo_ext\nops = torch.ops.demo_ext\n{code}")
    assert done.returncode == 0, done.stderr
    return done.stdout


def error(clone: Path, call: str) -> str:
    code = f"try:\n    {call}\nexcept RuntimeError as error:\n    print(error)"
    return said(clone, code).splitlines()[0]


def test_results(built: Path):
    said(built, RESULTS)


RESULTS = """
x = torch.randn(5, 7)
for case in (x, x.double(), x.t(), x[::2, 1:], x[:, :0], x[0, 0]):
    assert torch.equal(ops.softsign(case), case / (1 + case.abs())), case
weight = torch.arange(7.0)
out, sums = ops.scaled_rows(x, weight, 2, 0.5, True)
torch.testing.assert_close(out, -(x * weight * 0.5 + 2))
assert sums.dtype == torch.float64 and torch.equal(sums, out.double())
torch.testing.assert_close(ops.scaled_rows(x, weight, 2**53 + 1, 0.0, False)[1].max().item(), 2.0**53)
torch.testing.assert_close(ops.column_sums(x[::2]), x[::2].sum(0))
assert ops.column_sums(torch.empty(0, 3)).tolist() == [0, 0, 0]
"""


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("ops.softsign(torch.ones(2).half())", "softsign: is called with (float16), and there are"),
        (
            "ops.scaled_rows(torch.ones(2), torch.ones(2).double(), 1, 1.0, False)",
            "(float32, float64)",
        ),
        (
            "ops.column_sums(torch.eye(2).to_sparse())",
            "column_sums: only dense tensors are supported",
        ),
        ("ops.softsign(torch.ones([1] * 30))", "more than 25 dimensions are not supported"),
        ("ops.softsign.default.redispatch(CUDA, torch.ones(2))", "has no CUDA code; install a"),
    ],
)
def test_errors(built: Path, call: str, message: str):
    key = "torch._C.DispatchKeySet(torch._C.DispatchKey.CUDA)"
    assert message in error(built, call.replace("CUDA", key))


def test_the_doctor_tries_every_op(built: Path):
    done = python(built, "-m", NAME)
    assert "Self-test: 3 ops" in done.stdout
    assert "16 of 16 right" in done.stdout
    assert done.returncode == 0


def test_a_name_that_the_library_does_not_have(built: Path, tmp_path: Path):
    """A misspelt entry: the rest of the package works, and the doctor names the line to add."""
    other = copy_of(built, tmp_path / "misspelt")
    listing = other / NAME / "_ops.py"
    listing.write_text(listing.read_text().replace('"softsign",', '"soft_sign",'))
    assert said(other, "print(demo_ext.scale_add(torch.ones(1), torch.ones(1), 2.0))") == (
        "tensor([3.])\n"
    )
    message = error(other, "demo_ext.softsign(torch.ones(2))")
    assert message.startswith("soft_sign: the library of demo_ext does not have this op, only ")
    assert "OPWRIGHT_ELEMENTWISE(soft_sign) or OPWRIGHT_ROWS below its struct" in message
    done = python(other, "-m", NAME)
    assert done.returncode == 1
    assert f"MISSING {message}" in done.stdout


def test_a_forgotten_macro(tmp_path: Path):
    clone = make_clone(tmp_path / "clone")
    header = clone / "csrc/scale_add.h"
    header.write_text(header.read_text().replace("OPWRIGHT_ELEMENTWISE(scale_add)\n", ""))
    install(clone)
    done = python(clone, "-m", NAME)
    assert "MISSING scale_add: the library of demo_ext does not have this op, only " in done.stdout
    assert said(clone, "print(demo_ext.softsign(torch.ones(1)))") == "tensor([0.5000])\n"
    command = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests", "-k", "scale_add")
    tests = python(clone, *command).stdout
    assert "add OPWRIGHT_ELEMENTWISE(scale_add) or OPWRIGHT_ROWS below its struct" in tests
    assert re.search(r"^1 failed", tests, re.MULTILINE), tests


def test_ops_that_cannot_be_told_apart(tmp_path: Path):
    """The library names each; the rest of the package and its doctor work."""
    clone = make_clone(tmp_path / "clone")
    (clone / "csrc/again.cpp").write_text(AGAIN)
    install(clone)
    done = python(clone, "-m", NAME)
    assert done.returncode == 1
    assert "MISSING scale_add: two ops in csrc/ have this name; rename one of them" in done.stdout
    assert (
        "MISSING softsign: has two kernels for the CPU and the same dtypes; remove one"
        in done.stdout
    )
    facts = said(clone, "from demo_ext._opwright.library import library_problems as p; print(p())")
    assert "'column_sums': 'one op has two schemas: column_sums(Tensor " in facts
    assert "Exception raised from" not in done.stderr
    code = "from demo_ext._ops import mean_norm; print(mean_norm(torch.ones(2, 2)))"
    assert said(clone, code) == "tensor([[1., 1.],\n        [1., 1.]])\n"


AGAIN = """
#include "opwright/kernel.h"
void one(const float* x, float* out, int64_t n) {}
OPWRIGHT_KERNEL(one, "softsign(Tensor x) -> Tensor")
void two(const double* x, double* out, int64_t n) {}
OPWRIGHT_KERNEL(two, "column_sums(Tensor y) -> Tensor")
void three(const float* x, const float* y, float* out, int64_t n, double alpha) {}
OPWRIGHT_KERNEL(three, "scale_add(Tensor a, Tensor b, float alpha) -> Tensor")
"""


def test_sources_as_editors_leave_them(tmp_path: Path):
    """Indented macros, a remark behind one, Jupyter's copies, and Emacs' locks, which are links to nothing."""
    clone = make_clone(tmp_path / "clone")
    csrc = clone / "csrc"
    header = csrc / "scale_add.h"
    macro = "OPWRIGHT_ELEMENTWISE(scale_add)"
    header.write_text(header.read_text().replace(macro, f"  {macro}  // as in (1)"))
    for file in ("scaled_rows.cpp", "softsign_cpu.cpp"):
        text = (csrc / file).read_text()
        (csrc / file).write_text(text.replace('#include "op', ' # include "op'))
    (csrc / ".ipynb_checkpoints").mkdir()
    (csrc / ".ipynb_checkpoints/scale_add-checkpoint.h").write_text(header.read_text())
    for file in ("scale_add.h", "softsign_cpu.cpp"):
        (csrc / f".#{file}").symlink_to("me@here.1:2")
    install(clone)
    assert "16 of 16 right" in python(clone, "-m", NAME).stdout
    (csrc / "copy.h").write_text(header.read_text())
    running = start_build(clone, OPWRIGHT_CUDA="off")
    output, _ = running.communicate()
    assert running.returncode != 0
    assert "two headers have an op scale_add: copy.h and scale_add.h" in output


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("my.cc", "OPWRIGHT_KERNEL(f,\n", "OPWRIGHT_KERNEL(...) in .cu and .cpp files alone"),
        ("my.cu", " OPWRIGHT_ELEMENTWISE(f)", "OPWRIGHT_ELEMENTWISE(...) in .h files alone"),
        (
            "my.hpp",
            "OPWRIGHT_ROWS(f)\r\n",
            "OPWRIGHT_ROWS(...) in .h files alone; move it into one",
        ),
    ],
)
def test_an_op_in_a_file_that_is_not_looked_into(
    tmp_path: Path, name: str, text: str, message: str
):
    clone = make_clone(tmp_path / "clone")
    (clone / "csrc" / name).write_text(text)
    running = start_build(clone, OPWRIGHT_CUDA="off")
    output, _ = running.communicate()
    assert running.returncode != 0
    assert f"csrc/{name}: the build looks for {message}" in output


@pytest.mark.skipif(cuda_home() is None, reason="needs nvcc")
def test_a_new_cu_file_with_a_syntax_error(tmp_path: Path):
    """The glob finds the file at the next build, which the error stops."""
    clone = make_clone(tmp_path / "clone")
    build(clone, "cuda_kernels")
    (clone / "csrc/new.cu").write_text("__global__ void f() { this is no C++ }\n")
    running = start_build(clone, "cuda_kernels")
    output, _ = running.communicate()
    assert running.returncode != 0
    assert "csrc/new.cu(1): error:" in output

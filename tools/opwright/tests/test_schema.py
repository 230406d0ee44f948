"""Schemas and signatures that the engine cannot serve: the compiler says so in words."""

import shutil
import subprocess
from pathlib import Path

import pytest
from opwright.build.library import ENGINE
from opwright.build.toolchain import cuda_home

pytestmark = pytest.mark.skipif(not shutil.which("c++"), reason="needs a C++ compiler")

ELEMENTWISE = """
#include "opwright/elementwise_cpu.h"
namespace opwright {
struct scale_add {
  static constexpr const char* schema = "%s";
  static constexpr DTypes dtypes = floating_dtypes;
  template <typename C>
  struct Function {
    C alpha;
    OPWRIGHT_FUNCTION C operator()(C a, C b) const { return a + alpha * b; }
  };
};
OPWRIGHT_ELEMENTWISE(scale_add)
}
"""
KERNEL = '#include "opwright/kernel.h"\nvoid f(%s) {}\nOPWRIGHT_KERNEL(f, "f(%s) -> Tensor")\n'


def errors_of(source: str, file: Path, *compiler: str) -> str:
    file.write_text(source)
    command = [*(compiler or ("c++", "-fsyntax-only")), "-std=c++17", f"-I{ENGINE / 'include'}"]
    return subprocess.run([*command, str(file)], capture_output=True, text=True).stderr


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("scale_add(Tensor a, Tensor b, float alpha) -> Tensor", ""),
        ("scale_add(Tensor a, Tensor b, float alpha=1.5) -> Tensor", ""),
        ("scale_add(Tensor a, Tensor b, bool alpha) -> Tensor", "takes no bool; write `int`"),
        ("scale_add(Tensor a, Tensor b, SymInt alpha) -> Tensor", ""),
        ("scale_add(Tensor a, Tensor? b, float alpha) -> Tensor", "no optional arguments"),
        ("scale_add(Tensor a,Tensor b, float alpha) -> Tensor", "needs one space after it"),
        ("scale_ad(Tensor a, Tensor b, float alpha) -> Tensor", "differs from the struct's"),
        (
            "scale_add(Tensor a, Tensor b, str alpha) -> Tensor",
            "are Tensor, int, SymInt, float and bool",
        ),
        (
            "scale_add(Tensor a, Tensor[] b, float alpha) -> Tensor",
            "are Tensor, int, SymInt, float and bool",
        ),
        (
            "scale_add(Tensor a, Tensor b, float) -> Tensor",
            "are Tensor, int, SymInt, float and bool",
        ),
        ("scale_add(Tensor a, float alpha, Tensor b) -> Tensor", "tensors come before its numbers"),
        ("scale_add(Tensor a, Tensor b, float alpha)", "does not read like"),
        ("scale_add Tensor a, Tensor b -> Tensor", "does not read like"),
        ("scale_add(Tensor a, Tensor b, float alpha) -> float", "must return one `Tensor`"),
        ("scale_add(float alpha) -> Tensor", "takes one to three tensors"),
        ("scale_add(Tensor a, Tensor b, float alpha) -> (Tensor, Tensor)", ""),
        (
            "scale_add(Tensor a, Tensor b, float alpha) -> (Tensor, Tensor, Tensor)",
            "returns one Tensor or two",
        ),
    ],
)
def test_an_elementwise_op(schema: str, message: str, tmp_path: Path):
    said = errors_of(ELEMENTWISE % schema, tmp_path / "op.cpp")
    assert message in said
    assert bool(said) == bool(message), said


@pytest.mark.parametrize(
    ("parameters", "arguments", "message"),
    [
        ("const float*, float*, int64_t", "Tensor x", ""),
        ("const float*, float*, int64_t, int64_t, int64_t, bool", "Tensor x, int n, bool b", ""),
        ("const float*, double*, opwright::Sizes", "Tensor x", ""),
        ("const float*, int64_t", "Tensor x", "one `T*` per result"),
        ("float*, int64_t", "Tensor x", "one `const T*` per Tensor"),
        ("const float*, float*, int64_t, float", "Tensor x, float y", "takes const T* and T*"),
        ("const float*, float*, int64_t", "Tensor x, float y", "one `double` per float"),
        ("const float*, float*", "Tensor x, bool y", "one `bool` per bool"),
        ("const float*, float*", "Tensor x, int n", "one `int64_t` per int"),
        (
            "const float*, float*, int64_t, int64_t, int64_t",
            "Tensor x",
            "take `Sizes` for anything",
        ),
        ("const char*, float*", "Tensor x", "takes const T* and T*"),
        ("const float*, float*", "Tensor? x", "no optional arguments"),
        ("const float*, float*", "Tensor x,Tensor y", "needs one space after it"),
    ],
)
def test_a_kernel_of_ones_own(parameters: str, arguments: str, message: str, tmp_path: Path):
    said = errors_of(KERNEL % (parameters, arguments), tmp_path / "op.cpp")
    assert message in said
    assert bool(said) == bool(message), said


@pytest.mark.skipif(not cuda_home(), reason="needs nvcc")
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ("const float*, cudaStream_t, float*, int64_t", ""),  # types alone select the arguments
        (
            "const float*, float*, int64_t",
            "takes a cudaStream_t; without one it would serve the CPU",
        ),
        ("float, float*, int64_t, cudaStream_t", "takes const T* and T*"),
    ],
)
def test_a_kernel_of_ones_own_in_a_cu_file(parameters: str, message: str, tmp_path: Path):
    nvcc = (f"{cuda_home()}/bin/nvcc", "-c", "-o", "/dev/null", "-arch=sm_80")
    said = errors_of(KERNEL % (parameters, "Tensor x"), tmp_path / "op.cu", *nvcc)
    assert message in said
    assert said.count("static assertion failed") == bool(message), said


@pytest.mark.parametrize("compiler", ["g++", "clang++"])  # a release is built by clang
def test_two_files_with_kernels_link(compiler: str, tmp_path: Path):
    if not shutil.which(compiler):
        pytest.skip(f"needs {compiler}")
    source = KERNEL % ("const float*, float*, int64_t", "Tensor x")
    (tmp_path / "one.cpp").write_text(source)
    (tmp_path / "two.cpp").write_text(source.replace("f(", "g(").replace("(f,", "(g,"))
    command = [compiler, "-std=c++17", "-r", "-nostdlib", f"-I{ENGINE / 'include'}", "-o", "both.o"]
    done = subprocess.run(
        [*command, "one.cpp", "two.cpp"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr

"""The tests that an op gets from the list: they pass for the demo's ops, and each mistake makes them fail."""

import re
from pathlib import Path

import pytest
from clone import NAME, copy_of, install, make_clone, python

REFERENCE = "return torch.add(a, b, alpha=alpha)"
BACKWARD = "elementwise.batch, _save, _backward"
DERIVATIVE = "scale_add: its backward, or without one its reference, does not give the kernel's"
# What is changed in the demo's _ops.py, a test that must fail, and what it must say.
MISTAKES = {
    "a reference that forgets b, without a backward": (
        {REFERENCE: "return a.clone()", BACKWARD: "elementwise.batch"},
        "test_results_with_a_gradient[scale_add-float32-cpu]",
        "scale_add of [1] with a gradient is not",
    ),
    "a reference that forgets b, with a backward": (
        {REFERENCE: "return a.clone()"},
        "test_forward_mode_and_functional_gradients[scale_add-float64-cpu]",
        "scale_add in forward mode is not",
    ),
    "no backward, and a reference with the kernel's values and another derivative": (
        {
            REFERENCE: "return torch.add(a, b.detach(), alpha=alpha) + 0 * b",
            BACKWARD: "elementwise.batch",
        },
        "test_gradients[scale_add-float64-cpu]",
        DERIVATIVE,
    ),
    "a backward that forgets alpha": (
        {"grad, grad * ctx.alpha, None": "grad, grad, None"},
        "test_gradients[scale_add-float64-cpu]",
        DERIVATIVE,
    ),
    "a reference with other strides than the kernel's results": (
        {"lambda x: x.contiguous() /": "lambda x: x /"},
        "test_layouts[softsign-float32-cpu-transposed]",
        "; its reference gives ",
    ),
    "a batch rule that forgets a dimension": (
        {
            "elementwise.batch, _save": "lambda op, dims, a, b, n: (op(a, b, n), dims[0] or 0), _save"
        },
        "test_vmap[scale_add-float32-cpu-(1, 0)]",
        "scale_add under vmap over (1, 0) is not",
    ),
    "a function that replaces NaN": (
        {"return _softsign(x)": "return _softsign(x.nan_to_num())"},
        "test_nan_and_infinities[softsign-float32-cpu]",
        "softsign of NaN, infinities and extremes is not torch.nn.functional.softsign",
    ),
}


def run_tests(clone: Path, *chosen: str) -> str:
    done = python(clone, "-m", "pytest", "-q", "-rf", "-p", "no:cacheprovider", "tests", *chosen)
    return done.stdout + done.stderr


def test_right_ops_pass(built: Path):
    said = run_tests(built)
    assert re.search(r"\n\d+ passed, \d+ skipped", said), said


def test_quickly_there_is_one_dtype_per_op(built: Path):
    words = "['-q', '--collect-only', '-p', 'no:cacheprovider', 'tests']"
    code = f"import os, pytest; os.environ['OPWRIGHT_TESTS'] = 'quick'; pytest.main({words})"
    said = python(built, "-c", code).stdout
    listed = set(re.findall(r"::(test_\w+)\[(scale_add|softsign)-([a-z]+\d+)", said))
    assert ("test_results", "scale_add", "float32") in listed
    assert ("test_gradients", "softsign", "float64") in listed  # where the test is not for float32
    assert len(listed) == len({(test, op) for test, op, _ in listed})


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_found(built: Path, tmp_path: Path, mistake: str):
    changes, test, message = MISTAKES[mistake]
    clone = copy_of(built, tmp_path / "clone")
    change(clone / NAME / "_ops.py", changes)
    said = run_tests(clone, "-k", test.split("[")[0])
    assert f"FAILED tests/test_ops.py::TestOps::{test}" in said, said
    assert message in said


def test_a_kernel_that_loses_nan(tmp_path: Path):
    clone = make_clone(tmp_path / "clone")
    change(
        clone / "csrc/softsign_cpu.cpp", {"out[i] = x[i] /": "out[i] = x[i] != x[i] ? 0 : x[i] /"}
    )
    install(clone)
    said = run_tests(clone, "-k", "test_nan_and_infinities or test_results")
    found = re.findall(r"FAILED tests/test_ops.py::TestOps::(\S+)", said)
    tests = [f"test_nan_and_infinities[softsign-{dtype}-cpu]" for dtype in ("float32", "float64")]
    assert sorted(found) == tests, said
    assert "softsign of NaN, infinities and extremes is not torch.nn.functional.softsign" in said


def change(file: Path, changes: dict[str, str]) -> None:
    for right, wrong in changes.items():
        assert right in file.read_text()
        file.write_text(file.read_text().replace(right, wrong))

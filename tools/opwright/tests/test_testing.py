"""The tests that an op gets from the list: they pass for the demo's ops, and each mistake makes them fail."""

import re
from pathlib import Path

import pytest
from clone import NAME, copy_of, python

REFERENCE = "return torch.add(a, b, alpha=alpha)"
BACKWARD = "elementwise.batch, _save, _backward"
# What is changed in the demo's _ops.py, and a test that must fail.
MISTAKES = {
    "a reference that forgets b, without a backward": (
        {REFERENCE: "return a.clone()", BACKWARD: "elementwise.batch"},
        "test_results_with_a_gradient[scale_add-float32-cpu]",
    ),
    "a reference that forgets b, with a backward": (
        {REFERENCE: "return a.clone()"},
        "test_forward_mode_and_functional_gradients[scale_add-float64-cpu]",
    ),
    "no backward, and a reference with the kernel's values and another derivative": (
        {
            REFERENCE: "return torch.add(a, b.detach(), alpha=alpha) + 0 * b",
            BACKWARD: "elementwise.batch",
        },
        "test_gradients[scale_add-float64-cpu]",
    ),
    "a backward that forgets alpha": (
        {"grad, grad * ctx.alpha, None": "grad, grad, None"},
        "test_gradients[scale_add-float64-cpu]",
    ),
    "a reference with other strides than the kernel's results": (
        {"lambda x: x.contiguous() /": "lambda x: x /"},
        "test_layouts[softsign-float32-cpu-transposed]",
    ),
    "a batch rule that forgets a dimension": (
        {
            "elementwise.batch, _save": "lambda op, dims, a, b, n: (op(a, b, n), dims[0] or 0), _save"
        },
        "test_vmap[scale_add-float32-cpu-(1, 0)]",
    ),
    "a function that calls torch's own where there are NaNs": (
        {"return _softsign(x)": "return _softsign(x.nan_to_num())"},
        "test_nan_and_infinities[softsign-float32-cpu]",
    ),
}


def run_tests(clone: Path, *chosen: str) -> str:
    done = python(clone, "-m", "pytest", "-q", "-rf", "-p", "no:cacheprovider", "tests", *chosen)
    return done.stdout + done.stderr


def test_right_ops_pass(built: Path):
    said = run_tests(built)
    assert re.search(r"\n\d+ passed, \d+ skipped", said), said


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_found(built: Path, tmp_path: Path, mistake: str):
    changes, test = MISTAKES[mistake]
    clone = copy_of(built, tmp_path / "clone")
    listing = clone / NAME / "_ops.py"
    for right, wrong in changes.items():
        assert right in listing.read_text()
        listing.write_text(listing.read_text().replace(right, wrong))
    said = run_tests(clone, "-k", test.split("[")[0])
    assert f"FAILED tests/test_ops.py::TestOps::{test}" in said, said

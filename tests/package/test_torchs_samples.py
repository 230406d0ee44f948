"""Inputs that torch tests its own ops with, from its wheel (torch.testing._internal), through ours."""

import pytest
import torch
from conftest import DTYPES, FLOATING
from torch import Tensor

from cuda_ext_example import RMSNorm, cust_add, my_add, my_fast_add, rms_norm

pytest.importorskip("expecttest", reason="torch's samples need expecttest")
invocations = pytest.importorskip(
    "torch.testing._internal.common_methods_invocations", reason="this torch has no samples"
)
OPS = torch.ops.cuda_ext_example


def samples(name, device, dtype):
    """Torch's own function with the arguments of each sample; the larger set of samples has no gradients."""
    (info,) = (op for op in invocations.op_db if op.name == name)
    grad = dtype.is_floating_point or dtype.is_complex
    for sample in (
        *info.sample_inputs(device, dtype, requires_grad=grad),
        *info.reference_inputs(device, dtype),
    ):
        yield info.op, (sample.input, *sample.args), sample.kwargs


def assert_same(ours, torchs, *tensors):
    """Results and gradients."""
    expected, actual = torchs(), ours()
    torch.testing.assert_close(actual, expected, equal_nan=True)
    assert actual.requires_grad == expected.requires_grad
    leaves = [t for t in tensors if isinstance(t, Tensor) and t.requires_grad]
    if leaves:
        grad = torch.randn_like(expected)
        grads = [torch.autograd.grad(out, leaves, grad) for out in (actual, expected)]
        torch.testing.assert_close(*grads, equal_nan=True)
        with torch.no_grad():
            torch.testing.assert_close(ours(), expected.detach(), equal_nan=True)


def ids(dtype):
    return str(dtype).removeprefix("torch.")


@pytest.mark.parametrize("dtype", DTYPES, ids=ids)
def test_add(device, dtype):
    sums = numbers = 0
    for add, (x, y), options in samples("add", device, dtype):
        if options.get("alpha", 1) != 1 or not isinstance(x, Tensor):
            continue  # our ops have no alpha, and a tensor comes first
        if dtype.is_complex and not all(torch.as_tensor(t).isfinite().all() for t in (x, y)):
            continue  # torch's own multiplies by alpha, which turns some infinities into NaN
        if isinstance(y, Tensor) and x.dtype == y.dtype:
            for ours in (my_add, my_fast_add, OPS.my_add, OPS.my_fast_add):
                assert_same(lambda: ours(x, y), lambda: add(x, y), x, y)  # noqa: B023
            sums += 1
        if (not isinstance(y, Tensor) or y.dim() == 0) and torch.result_type(x, y) == x.dtype:
            assert_same(lambda: cust_add(x, y), lambda: add(x, y), x, y)  # noqa: B023
            numbers += 1
    assert sums >= 8
    assert numbers >= 2


@pytest.mark.parametrize("dtype", FLOATING, ids=ids)
def test_rms_norm(device, dtype):
    tried = 0
    for norm, (x, shape, *rest), options in samples("nn.functional.rms_norm", device, dtype):
        given = dict(zip(("weight", "eps"), rest, strict=False)) | options
        weight, eps = given.get("weight"), given.get("eps")
        module = RMSNorm(shape, eps, weight is not None)
        parameters = {} if weight is None else {"weight": weight}

        def torchs():
            return norm(x, shape, *rest, **options)  # noqa: B023

        def ours():
            return torch.func.functional_call(module, parameters, (x,))  # noqa: B023

        assert_same(ours, torchs, x, weight)
        if len(shape) == 1:
            for function in (rms_norm, OPS.rms_norm):
                assert_same(lambda: function(x, weight, eps), torchs, x, weight)  # noqa: B023
        tried += 1
    assert tried >= 6

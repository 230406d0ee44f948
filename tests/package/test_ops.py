"""Every op of the list beside torch's own, then what is particular to my_add, my_fast_add and cust_add."""

import math

import pytest
import torch
from conftest import COMPLEX, FLOATING, INTEGER, assert_same, make

from cuda_ext_example import cust_add, my_add, my_fast_add
from cuda_ext_example._ops import OPS
from cuda_ext_example._opwright import testing


class TestOps(testing.OpTests):
    ops = OPS


def test_every_half_precision_pair_of_bits(device):
    """All 65536 bit patterns of the 16-bit floats, against a row of chosen ones."""
    for dtype in (torch.float16, torch.bfloat16):
        every = torch.arange(-(2**15), 2**15, dtype=torch.int16).view(dtype).to(device)
        for other in (0.0, 1.0, 6.1e-5, 5.96e-8, 65504.0, float("inf")):
            row = torch.full_like(every, other)
            assert_same(my_add(every, row), torch.add(every, row))


@pytest.mark.parametrize(
    "value", [0, 1, -1, 127, 300, -(2**31), 2**53 + 1, 2**63 - 1, -(2**63), True]
)
def test_cust_add_int_is_exact(device, value):
    for dtype in INTEGER:
        x = make((1000,), dtype, device)
        expected = (x.to(torch.int64).cpu() + torch.tensor(value, dtype=torch.int64)).to(dtype)
        assert_same(cust_add(x, value).cpu(), expected)
    for dtype in FLOATING + COMPLEX:
        x = make((1000,), dtype, device)
        assert_same(cust_add(x, value), torch.add(x, value))


@pytest.mark.parametrize("value", [0.1, -2.5, 1e30, float("inf"), float("nan")])
def test_cust_add_float(device, value):
    # torch multiplies a complex scalar by alpha=1, which turns infinity into NaN
    for dtype in FLOATING + (COMPLEX if math.isfinite(value) else []):
        x = make((1000,), dtype, device)
        assert_same(cust_add(x, value), torch.add(x, value))


def test_cust_add_complex(device):
    for dtype in COMPLEX:
        x = make((1000,), dtype, device)
        assert_same(cust_add(x, 1.5 - 2j), torch.add(x, 1.5 - 2j))


def test_cust_add_rounds_an_int_once(device):
    """2**54 + 2**30 + 1 lies just above the middle of two float32: by way of float64 it would fall
    on the middle, and then to the even one."""
    for value in (2**54 + 2**30 + 1, -(2**54) - 2**30 - 1, 2**53 + 2**29 + 1):
        for dtype in FLOATING + COMPLEX:
            x = torch.zeros(1, dtype=dtype, device=device)
            assert_same(cust_add(x, value), torch.add(x, value))


def test_cust_add_takes_numbers_of_numpy(device):
    numpy = pytest.importorskip("numpy", reason="needs NumPy")
    for value in (numpy.int64(3), numpy.int8(-3), numpy.float32(0.1), numpy.float64(0.1)):
        x = make((100,), torch.float32, device)
        assert_same(cust_add(x, value), torch.add(x, value))
    x = make((100,), torch.int64, device)
    assert_same(cust_add(x, numpy.int64(2**62)), torch.add(x, numpy.int64(2**62)))
    z = make((100,), torch.complex64, device)
    assert_same(cust_add(z, numpy.complex64(1 - 2j)), torch.add(z, 1 - 2j))
    assert_same(cust_add(x, numpy.bool_(True)), x + 1)


@pytest.mark.parametrize(
    "value", [torch.tensor(3), torch.tensor(0.1, dtype=torch.float64), torch.tensor(1 / 3), True]
)
def test_cust_add_takes_a_tensor_without_dimensions(device, value):
    for dtype in FLOATING + COMPLEX:
        x = make((100,), dtype, device)
        assert_same(cust_add(x, value), torch.add(x, value))
        if isinstance(value, torch.Tensor) and device == "cuda":
            assert_same(cust_add(x, value.cuda()), torch.add(x, value.cuda()))
    x = make((100,), torch.int8, device)
    whole = torch.tensor(300)  # wraps, as torch's own tensor of int8 does
    assert_same(cust_add(x, whole), torch.add(x, whole))


def test_a_tensor_without_dimensions_has_a_gradient(device):
    value = torch.tensor(2.0, device=device, requires_grad=True)
    cust_add(torch.ones(3, device=device), value).pow(2).sum().backward()
    assert value.grad == 18


MIXED = [
    (torch.float16, torch.float32),
    (torch.bfloat16, torch.float32),
    (torch.float16, torch.bfloat16),
    (torch.float32, torch.float32),
    (torch.bfloat16, torch.bfloat16),
]


@pytest.mark.parametrize(("a_dtype", "b_dtype"), MIXED)
def test_autocast_promotes_as_torch_add_does(add, device, a_dtype, b_dtype):
    a, b = make((100,), a_dtype, device), make((100,), b_dtype, device)
    with torch.autocast(device, dtype=torch.bfloat16):
        assert_same(add(a, b), torch.add(a, b))
        a.requires_grad_()
        assert_same(add(a, b), torch.add(a, b))
        (grad,) = torch.autograd.grad(add(a, b).float().sum(), a)
        assert grad.dtype == a_dtype
        assert (grad == 1).all()


def test_cust_add_op_takes_every_number(device):
    op = torch.ops.cuda_ext_example.cust_add
    x = torch.tensor([0, 2**60], device=device)
    assert_same(op(x, 2**53 + 1), x + (2**53 + 1))
    assert_same(op(x.double(), 0.5), x.double() + 0.5)
    assert_same(op(x.to(torch.complex64), 1j), x.to(torch.complex64) + 1j)
    assert_same(op.default(x, 3), x + 3)


def test_cust_add_op_cuts_nothing_off(device):
    """torch matches NumPy's numbers and tensors with an int, too, if they meet that overload first."""
    numpy = pytest.importorskip("numpy", reason="needs NumPy")
    op = torch.ops.cuda_ext_example.cust_add
    x = torch.zeros(3, device=device)
    for value in (numpy.float16(0.5), numpy.float32(0.5), numpy.array(0.5), torch.tensor(0.5)):
        assert op(x, value).tolist() == [0.5] * 3
    for value in (numpy.float32(0.5), numpy.int64(3)):
        with pytest.raises(RuntimeError, match="a float value cannot be added to a int64 tensor"):
            op(x.long(), value)
    value = torch.tensor([1.0, 2.0], device=device, requires_grad=True)
    torch.vmap(op.Tensor, (None, 0))(x, value).square().sum().backward()
    assert value.grad.tolist() == [6, 12]
    with pytest.raises(TypeError, match=r"a tensor of shape \[2\]"):
        op(x, value)
    with pytest.raises(TypeError, match=r"a tensor of shape \[1\]"):
        torch.vmap(op.Tensor, (None, 0))(x, value[:, None])


def test_the_cust_add_op_for_any_number_comes_first():
    """torch tries overloads in their order, and each that does not match takes longer than the call."""
    op = torch.ops.cuda_ext_example.cust_add
    assert op.overloads()[0] == "default"
    x = torch.zeros(2, 3)
    torch._C._functorch._set_vmap_fallback_enabled(False)  # a call per element of the batch
    try:
        assert torch.equal(torch.vmap(lambda row: op(row, 2))(x), x + 2)
    finally:
        torch._C._functorch._set_vmap_fallback_enabled(True)
    level = torch._C._enter_dual_level()  # as compiled graphs do, without a word to forward_ad
    try:
        dual = torch._VF._make_dual(x, x + 1, level=level)
        assert torch.equal(torch._VF._unpack_dual(op(dual, 0.5), level=level)[1], x + 1)
    finally:
        torch._C._exit_dual_level(level=level)


def test_large_cpu_tensors_use_all_threads():
    a, b = torch.randn(1 << 20), torch.randn(1 << 20)
    threads = torch.get_num_threads()
    try:
        for count in (1, 2, 7):
            torch.set_num_threads(count)
            assert_same(my_fast_add(a, b), a + b)
            assert_same(
                my_fast_add(a.view(1024, 1024).t(), b.view(1024, 1024)),
                a.view(1024, 1024).t() + b.view(1024, 1024),
            )
    finally:
        torch.set_num_threads(threads)

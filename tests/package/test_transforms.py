"""What torch does with the ops: autograd, torch.compile, torch.export, vmap, opcheck."""

import pytest
import torch
from torch.autograd import forward_ad
from torch.library import opcheck

from cuda_ext_example import cust_add, my_add, my_fast_add, rms_norm

OPS = torch.ops.cuda_ext_example


@pytest.fixture(params=[my_add, my_fast_add], ids=["my_add", "my_fast_add"])
def add(request):
    return request.param


def leaf(*shape, dtype=torch.float64, device="cpu"):
    return torch.randn(shape, dtype=dtype, device=device, requires_grad=True)


@pytest.mark.parametrize(
    ("a_shape", "b_shape"), [((3, 4), (3, 4)), ((3, 4), (4,)), ((3, 1), (1, 4)), ((), (2,))]
)
def test_gradients(add, device, a_shape, b_shape):
    a, b = leaf(*a_shape, device=device), leaf(*b_shape, device=device)
    assert torch.autograd.gradcheck(add, (a, b), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(add, (a, b))
    assert torch.autograd.gradcheck(lambda x: cust_add(x, 3), (a,), check_forward_ad=True)


def test_complex_gradients(add):
    a, b = leaf(3, 4, dtype=torch.complex128), leaf(4, dtype=torch.complex128)
    assert torch.autograd.gradcheck(add, (a, b))
    assert torch.autograd.gradcheck(lambda x: cust_add(x, 1j), (a,))


def test_a_gradient_for_one_input_only(add):
    a, b = leaf(3), torch.randn(3, dtype=torch.float64)
    add(a, b).sum().backward()
    assert a.grad.tolist() == [1, 1, 1]
    assert b.grad is None


def test_no_grad_records_nothing(add):
    a = leaf(3)
    assert add(a, a).grad_fn.name() == f"{add.__name__}Backward"
    with torch.no_grad():
        assert add(a, a).grad_fn is None
        assert cust_add(a, 1).grad_fn is None
    assert not add(torch.ones(3), torch.ones(3)).requires_grad


def test_forward_mode(add):
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(torch.ones(3), torch.full((3,), 5.0))
        tangent = forward_ad.unpack_dual(add(dual, torch.ones(2, 3))).tangent
        assert tangent.tolist() == [[5, 5, 5]] * 2
        assert forward_ad.unpack_dual(cust_add(dual, 1)).tangent.tolist() == [5, 5, 5]


def test_functional_transforms(add):
    assert torch.func.grad(lambda a: add(a, a).sum())(torch.ones(3)).tolist() == [2, 2, 2]
    per_sample = torch.vmap(torch.func.grad(lambda a: cust_add(add(a, a), 2).pow(2).sum()))
    assert per_sample(torch.ones(2, 3)).tolist() == [[16, 16, 16]] * 2
    assert torch.func.hessian(lambda a: add(a, a).pow(2).sum())(torch.ones(2)).tolist() == [
        [8, 0],
        [0, 8],
    ]


@pytest.mark.parametrize("in_dims", [(0, 0), (1, 0), (0, None), (None, 1), (-1, -1)])
def test_vmap(add, device, in_dims):
    a, b = torch.randn(3, 3, 3, device=device), torch.randn(3, 3, device=device)
    torch.testing.assert_close(torch.vmap(add, in_dims)(a, b), torch.vmap(torch.add, in_dims)(a, b))


def test_vmap_of_cust_add(device):
    x = torch.arange(12, device=device).view(3, 4)
    assert (
        torch.vmap(lambda row: cust_add(row, 2**53 + 1))(x).tolist() == (x + (2**53 + 1)).tolist()
    )
    assert (
        torch.vmap(lambda column: cust_add(column, 1), in_dims=1, out_dims=1)(x).tolist()
        == (x + 1).tolist()
    )


SAMPLES = [
    (OPS.my_add.default, lambda x: (x, x)),
    (OPS.my_add.default, lambda x: (x.t(), x[:, 0])),
    (OPS.my_fast_add.default, lambda x: (x, x)),
    (
        OPS.my_fast_add.default,
        lambda x: (x.view(1, 3, 3, 1).to(memory_format=torch.channels_last), x[0, 0]),
    ),
    (OPS.cust_add.float, lambda x: (x.t(), 2.5)),
    (OPS.cust_add.int, lambda x: (x.to(torch.int64), 2)),
    (OPS.cust_add.complex, lambda x: (x.to(torch.complex64), 1.0, 2.0)),
    (OPS.cust_add.default, lambda x: (x, 2.5)),
]


@pytest.mark.parametrize(
    ("op", "arguments"),
    SAMPLES,
    ids=lambda value: str(value) if isinstance(value, torch._ops.OpOverload) else "",
)
def test_opcheck(op, arguments, device):
    inputs = arguments(torch.randn(3, 3, device=device))
    opcheck(op, inputs)
    if inputs[0].is_floating_point():
        opcheck(op, (inputs[0].detach().requires_grad_(), *inputs[1:]))


def model(a, b):
    return cust_add(my_fast_add(my_add(a, b), b), 2)


@pytest.mark.parametrize("dynamic", [False, True])
def test_compile_without_graph_breaks(device, dynamic):
    compiled = torch.compile(model, fullgraph=True, dynamic=dynamic, backend="aot_eager")
    for rows in (3, 5):
        a, b = leaf(rows, 4, device=device), leaf(4, device=device)
        torch.testing.assert_close(compiled(a, b), model(a, b))
        compiled(a, b).sum().backward()
        assert a.grad.tolist() == [[1] * 4] * rows
        assert b.grad.tolist() == [2 * rows] * 4


class Module(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(4))

    def forward(self, x):
        return model(x, self.weight)


@pytest.mark.parametrize("strict", [False, True])
def test_export(strict):
    rows = torch.export.Dim("rows")
    program = torch.export.export(
        Module(), (torch.randn(3, 4),), dynamic_shapes=({0: rows},), strict=strict
    )
    graph = program.graph_module.print_readable(print_output=False)  # with its subgraphs
    assert "cuda_ext_example.my_add.default" in graph
    assert "cuda_ext_example.my_fast_add.default" in graph
    x = torch.randn(7, 4)
    torch.testing.assert_close(program.module()(x), x + 4)


def test_meta_tensors(add):
    out = add(torch.empty(3, 4, device="meta"), torch.empty(4, device="meta"))
    assert out.is_meta
    assert out.shape == (3, 4)


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint16])
def test_meta_tensors_of_unsupported_dtypes(add, dtype):
    x = torch.empty(3, dtype=dtype, device="meta")
    with pytest.raises(RuntimeError, match="is not supported; use one of"):
        add(x, x)


def test_meta_tensors_of_too_many_dimensions(add):
    x = torch.empty([1] * 30, device="meta")
    with pytest.raises(RuntimeError, match="more than 25 dimensions"):
        add(x, x)


def test_symbolic_trace(add):
    traced = torch.fx.symbolic_trace(lambda x, y: cust_add(rms_norm(add(x, y)), 2))
    x, y = torch.randn(2, 3), torch.randn(3)
    torch.testing.assert_close(traced(x, y), cust_add(rms_norm(add(x, y)), 2))


@pytest.mark.parametrize("weighted", [False, True])
def test_opcheck_of_a_gradient(weighted):
    x, weight = torch.randn(3, 4), torch.randn(4) if weighted else None
    _, rstd = OPS._rms_norm_forward(x, weight, 1e-5)
    opcheck(OPS._rms_norm_backward.default, (x, x, weight, rstd, True, True))


def test_a_sparse_leaf_is_refused():
    leaf = torch.eye(3).to_sparse().requires_grad_()
    with pytest.raises(RuntimeError, match=r"only dense tensors are supported.*to_dense"):
        rms_norm(leaf)

"""What torch does with the ops: autograd, torch.compile, torch.export, vmap, opcheck."""

import pytest
import torch
from torch.library import opcheck

from cuda_ext_example import add_rms_norm, cust_add, my_add, my_fast_add, rms_norm, silu_mul

OPS = torch.ops.cuda_ext_example


def test_no_grad_records_nothing(add):
    a = torch.randn(3, requires_grad=True)
    assert add(a, a).grad_fn.name() == f"{add.__name__}Backward"
    with torch.no_grad():
        assert add(a, a).grad_fn is None
        assert cust_add(a, 1).grad_fn is None
    assert not add(torch.ones(3), torch.ones(3)).requires_grad


def test_vmap_of_cust_add_is_exact(device):
    x = torch.arange(12, device=device).view(3, 4)
    assert torch.equal(torch.vmap(lambda row: cust_add(row, 2**53 + 1))(x), x + (2**53 + 1))


# The list's own tests have opcheck of the overloads for float32.
SAMPLES = [
    (OPS.cust_add.int, lambda x: (x.to(torch.int64), 2)),
    (OPS.cust_add.complex, lambda x: (x.to(torch.complex64), 1.0, 2.0)),
    (OPS.cust_add.default, lambda x: (x, 2.5)),
]


@pytest.mark.parametrize(
    ("op", "arguments"),
    SAMPLES,
    ids=lambda value: str(value) if isinstance(value, torch._ops.OpOverload) else "",
)
@pytest.mark.filterwarnings("ignore:The .grad attribute")  # which torch 2.15 itself asks for
def test_opcheck(op, arguments, device):
    inputs = arguments(torch.randn(3, 3, device=device))
    opcheck(op, inputs)
    if inputs[0].is_floating_point():
        opcheck(op, (inputs[0].detach().requires_grad_(), *inputs[1:]))


def model(a, b):
    return cust_add(my_fast_add(my_add(a, b), b), 2)


def norm(x, y):
    return rms_norm(x, y[0], 1e-5)


def add_norm(x, y):
    return add_rms_norm(x, y, y[0], 1e-5)[0]


@pytest.mark.parametrize(
    ("function", "without_gradient", "with_gradient"),
    [
        (my_fast_add, "torch", "torch"),
        (silu_mul, "torch", "torch"),
        (norm, "torch", "kernel"),
        (add_norm, "torch", "kernel"),
        (OPS.silu_mul, "kernel", "kernel"),
        (OPS.my_fast_add, "kernel", "kernel"),
    ],
)
def test_what_torch_compile_gets(function, without_gradient, with_gradient, device):
    """docs/ops.md has the rule."""

    def compiled(x, y):
        torch._dynamo.reset()
        graphs = []
        backend = lambda graph, _: graphs.append(graph.code) or graph  # noqa: E731
        result = torch.compile(lambda x, y: function(x, y), fullgraph=True, backend=backend)(x, y)
        torch.testing.assert_close(result, function(x, y))
        return "kernel" if "cuda_ext_example" in graphs[0] else "torch"

    x, y = (torch.randn(3, 4, device=device, requires_grad=grad) for grad in (True, False))
    assert compiled(x.detach(), y) == without_gradient
    assert compiled(x, y) == with_gradient
    with torch.no_grad():
        assert compiled(x, y) == without_gradient
    with torch.autocast(device, torch.bfloat16):  # which has a rule for the op
        assert compiled(x.detach(), y) == "kernel"


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
    is_kept = "cuda_ext_example.my_add.default" in graph
    assert is_kept is not strict  # which is torch.compile's way
    assert "cuda_ext_example.cust_add." in graph
    x = torch.randn(7, 4)
    torch.testing.assert_close(program.module()(x), x + 4)


def test_a_size_is_added_without_compiling_for_each(device):
    torch._dynamo.reset()
    compiled = 0

    def backend(graph, _):
        nonlocal compiled
        compiled += 1
        return graph

    function = torch.compile(
        lambda x: cust_add(x, x.shape[0]), backend=backend, fullgraph=True, dynamic=None
    )
    for rows in range(2, 20):
        assert function(torch.zeros(rows, device=device)).tolist() == [rows] * rows
    assert compiled <= 2


@pytest.mark.parametrize("value", [2.5, 3, True], ids=str)
@pytest.mark.parametrize("add", [cust_add, OPS.cust_add], ids=["function", "op"])
def test_a_number_that_only_a_run_knows(add, value):
    class Item(torch.nn.Module):
        def forward(self, x, value):
            return add(x, value.item()).square()

    x, value = torch.ones(3, requires_grad=True), torch.tensor(value)
    torch._dynamo.reset()
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        out = torch.compile(Item(), fullgraph=True, backend="aot_eager")(x, value)
    assert torch.equal(out, (x + value).square())
    assert torch.equal(torch.autograd.grad(out.sum(), x)[0], 2 * (x + value).detach())
    for strict in (False, True):
        program = torch.export.export(Item(), (x, value), strict=strict).module()
        assert torch.equal(program(x, value + value), (x + (value + value)).square())


def test_a_size_is_added_in_graphs():
    class Sizes(torch.nn.Module):
        def forward(self, x):
            return cust_add(x, x.shape[0])

    rows = torch.export.Dim("rows")
    program = torch.export.export(Sizes(), (torch.zeros(3, 2),), dynamic_shapes=({0: rows},))
    assert program.module()(torch.zeros(7, 2)).unique().tolist() == [7]
    x = torch.zeros(5, 2, requires_grad=True)
    torch.compile(Sizes(), dynamic=True, backend="aot_eager")(x).sum().backward()
    assert x.grad.unique().tolist() == [1]


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint16])
def test_meta_tensors_of_dtypes_without_kernels(add, dtype):
    x = torch.empty(3, 4, dtype=dtype, device="meta")
    for function in (lambda: add(x, x), lambda: rms_norm(x), lambda: cust_add(x, 1)):
        with pytest.raises(RuntimeError, match=r"dtype \w+ is not supported; use one of float32"):
            function()


def test_meta_tensors_of_too_many_dimensions(add):
    x = torch.empty([1] * 30, device="meta")
    for function in (lambda: add(x, x), lambda: rms_norm(x), lambda: cust_add(x, 1)):
        with pytest.raises(RuntimeError, match="more than 25 dimensions are not supported, got 30"):
            function()


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:`torch.jit.trace")
def test_jit_trace_keeps_the_gradient(add):
    x, y = torch.ones(3), torch.full((3,), 5.0)
    traced = torch.jit.trace(lambda a, b: a * add(a, b), (x, y))
    leaf = x.clone().requires_grad_()
    traced(leaf, y).sum().backward()
    assert leaf.grad.tolist() == [7, 7, 7]


def test_a_subclass_sees_the_function(add):
    seen = []

    class Seen(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            seen.append(function)
            return super().__torch_function__(function, types, args, kwargs)

    add(torch.ones(3).as_subclass(Seen), torch.ones(3))
    assert add in seen


def test_a_leaf_that_a_transform_captures():
    """It requires a gradient, of which autograd alone does not know all."""
    leaf = torch.ones(3, requires_grad=True)
    out = torch.vmap(lambda row: row * my_add(row, leaf))(torch.ones(2, 3))
    out.sum().backward()
    assert leaf.grad.tolist() == [2, 2, 2]
    grad = torch.func.grad(lambda x: my_add(x, leaf).sum())(torch.ones(3))
    assert grad.tolist() == [1, 1, 1]


def test_symbolic_trace(add):
    def program(x, y):
        return cust_add(rms_norm(add(x, y), y), 2)

    x, y = torch.randn(2, 3), torch.randn(3)
    torch.testing.assert_close(torch.fx.symbolic_trace(program)(x, y), program(x, y))

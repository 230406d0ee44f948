"""rms_norm: torch's results and gradients, for every dtype, shape and layout."""

import pytest
import torch
from conftest import FLOATING, needs_gpu
from torch.fx.experimental.proxy_tensor import make_fx
from torch.library import opcheck
from torch.nn import functional

from cuda_ext_example import add_rms_norm, rms_norm

OPS = torch.ops.cuda_ext_example


@pytest.fixture(params=FLOATING, ids=lambda dtype: str(dtype).removeprefix("torch."))
def floating(request) -> torch.dtype:
    return request.param


def exact(x, weight=None, eps=None):
    """In float64, from the same inputs."""
    if eps is None:
        eps = torch.finfo(torch.promote_types(x.dtype, torch.float32)).eps
    wide = x.double()
    out = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)
    return out if weight is None else out * weight.double()


def assert_near(actual, expected, dtype, steps=4):
    """Within a few steps of the dtype, relative to each element."""
    assert actual.dtype == dtype
    step = torch.finfo(dtype).eps
    torch.testing.assert_close(
        actual.double(), expected, rtol=steps * step, atol=steps * step * 1e-2, equal_nan=True
    )


def pair(shape, dtype, device):
    torch.manual_seed(0)
    make = {"dtype": torch.float64, "device": device}
    return torch.randn(shape, **make).to(dtype), torch.randn(shape[-1:], **make).to(dtype)


SHAPES = [
    *((1, 1), (3, 2), (5, 3), (2, 7), (4, 128), (3, 1000), (2, 1021), (7, 4096)),
    *((5,), (2, 3, 4, 5), (300, 33), (0, 5), (3, 0), (2, 0, 4)),
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("eps", [None, 1e-5, 0.1])
def test_every_shape_and_dtype(floating, device, shape, eps):
    x, weight = pair(shape, floating, device)
    for norm in (rms_norm, OPS.rms_norm):
        assert_near(norm(x, weight, eps), exact(x, weight, eps), floating)
        assert_near(norm(x, None, eps), exact(x, None, eps), floating)
    torchs = functional.rms_norm(x, x.shape[-1:], weight, eps)
    ours = rms_norm(x, weight, eps)
    torch.testing.assert_close(ours, torchs, equal_nan=True)
    assert ours.stride() == torchs.contiguous().stride()


@pytest.mark.parametrize("size", [1, 2, 31, 4095, 4100, 16384, 18432, 40961, 2**17, 2**18 + 3])
def test_rows_from_one_element_to_many(floating, device, size):
    x, weight = pair((3, size), floating, device)
    assert_near(rms_norm(x, weight), exact(x, weight), floating, steps=4 if size < 2**13 else 32)
    check_gradients(x, weight, floating)


def test_long_rows_are_summed_exactly_enough():
    x = torch.rand(2**24, generator=torch.Generator().manual_seed(0)) * 1e-3 + 1
    torch.testing.assert_close(rms_norm(x).double(), exact(x), rtol=3e-7, atol=0)
    assert rms_norm(torch.ones(1, dtype=torch.bfloat16).expand(2**28))[-1] == 1


@needs_gpu
def test_a_row_of_as_many_elements_as_an_int_counts():
    x = torch.ones(2**31 - 1, dtype=torch.bfloat16, device="cuda")
    weight = torch.full_like(x, 2)
    x[-1] = 3
    out = rms_norm(x, weight)
    assert out[:-1].min() == out[:-1].max() == 2
    assert out[-1] == 6


@pytest.mark.parametrize("shape", [(0, 4096), (0, 7), (3, 0, 4096), (2, 0), (0, 0)], ids=str)
def test_gradients_of_an_empty_batch(floating, device, shape):
    x, weight = (t.requires_grad_() for t in pair(shape, floating, device))
    rms_norm(x, weight).sum().backward()
    assert x.grad.shape == shape
    assert torch.equal(weight.grad, torch.zeros_like(weight))


def _fused(x):
    """Query, key and value side by side, as one projection makes them."""
    return torch.stack([x, x * 2, x * 3], dim=1).view(2, -1, 3, x.shape[1]).transpose(1, 2)


LAYOUTS = {
    "transposed": lambda x: x.t().contiguous().t(),
    "every second column": lambda x: x.repeat_interleave(2, dim=1)[:, ::2],
    "rows of a wider matrix": lambda x: torch.cat([x, x], dim=1)[:, : x.shape[1]],
    "one row, expanded": lambda x: x[:1].expand(x.shape),
    "leading dimensions swapped": lambda x: x.view(2, -1, x.shape[1]).transpose(0, 1),
    "heads of a fused projection": lambda x: _fused(x)[:, 1],
    "heads first": lambda x: _fused(x)[:, 1].transpose(0, 1),
    "off its alignment": lambda x: torch.cat([x.flatten()[:1], x.flatten()])[1:].view(x.shape),
}


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("size", [128, 130, 4101])
def test_layouts(floating, device, name, size):
    x, weight = pair((6, size), floating, device)
    x = LAYOUTS[name](x)
    moved = torch.cat([weight[:1], weight])[1:]
    for w in (weight, torch.stack([weight, weight], dim=1)[:, 0], moved):
        assert_near(rms_norm(x, w), exact(x, w), floating)
    check_gradients(x, weight, floating)


def check_gradients(x, weight, dtype):
    x, weight = x.detach().requires_grad_(), weight.detach().requires_grad_()
    grad = torch.randn_like(x.detach().double()).to(dtype)
    wide = [t.detach().double().requires_grad_() for t in (x, weight)]
    eps = torch.finfo(torch.promote_types(dtype, torch.float32)).eps
    expected = torch.autograd.grad(exact(*wide, eps=eps), wide, grad.double())
    actual = torch.autograd.grad(rms_norm(x, weight), (x, weight), grad)
    assert [gradient.dtype for gradient in actual] == [dtype, weight.dtype]
    for ours, right in zip(actual, expected, strict=True):
        # A sum's error is of the size of its terms.
        scale = right.abs().max().clamp(min=1).item()
        step = max(torch.finfo(of).eps for of in (dtype, ours.dtype))
        if ours.dtype == torch.float64 != dtype:  # computed in float32
            step = max(step, torch.finfo(torch.float32).eps)
        torch.testing.assert_close(ours.double(), right, rtol=8 * step, atol=8 * step * scale)


@pytest.mark.parametrize("weight_dtype", FLOATING, ids=str)
@pytest.mark.parametrize("size", [1, 64, 130, 4096, 20001])
@pytest.mark.filterwarnings("ignore:Mismatch dtype between input and weight")
def test_a_weight_of_another_dtype(floating, device, weight_dtype, size):
    x, weight = pair((5, size), floating, device)
    weight = weight.to(weight_dtype)
    assert_near(rms_norm(x, weight), exact(x, weight), floating)
    torchs = functional.rms_norm(x, x.shape[-1:], weight)
    assert rms_norm(x, weight).dtype == torchs.dtype
    assert_near(rms_norm(x, weight, out=torch.empty_like(x)), exact(x, weight), floating)
    check_gradients(x, weight, floating)


@pytest.mark.parametrize("which", [0, 1])
def test_a_gradient_for_one_input_only(device, which):
    inputs = list(pair((3, 5), torch.float32, device))
    inputs[which].requires_grad_()
    rms_norm(*inputs).sum().backward()
    assert inputs[which].grad is not None
    assert inputs[1 - which].grad is None


def test_gradients_are_the_same_bits_in_every_run(device):
    x, weight = (t.requires_grad_() for t in pair((513, 1000), torch.float32, device))
    grad = torch.randn_like(x)
    first = torch.autograd.grad(rms_norm(x, weight), (x, weight), grad)
    for _ in range(5):
        again = torch.autograd.grad(rms_norm(x, weight), (x, weight), grad)
        assert all(map(torch.equal, first, again))


@pytest.mark.parametrize(
    ("in_dims", "x", "weight", "message"),
    [
        ((0, None), (5,), None, "at least one dimension"),
        ((0, None), (5, 4), (5,), r"of shape \[4\] .* of shape \[5\]"),
        ((0, 0), (5, 4), (5, 1), r"of shape \[4\] .* of shape \[1\]"),
        ((None, 0), (5, 4), (5, 4, 4), r"of shape \[4\] .* of shape \[4, 4\]"),
    ],
)
@pytest.mark.parametrize("norm", [rms_norm, OPS._rms_norm_forward], ids=["function", "op"])
def test_vmap_checks_each_example(device, norm, in_dims, x, weight, message):
    tensors = [None if shape is None else torch.ones(shape, device=device) for shape in (x, weight)]
    with pytest.raises(RuntimeError, match=message):
        torch.vmap(lambda x, w: norm(x, w, None), in_dims)(*tensors)


@pytest.mark.filterwarnings("ignore:Mismatch dtype between input and weight")
def test_autocast_is_torchs(device):
    for x_dtype, weight_dtype in (
        *((torch.bfloat16, torch.float32), (torch.float32, torch.bfloat16)),
        *((torch.bfloat16, torch.bfloat16), (torch.float32, torch.float32)),
    ):
        x = pair((3, 64), x_dtype, device)[0]
        weight = pair((3, 64), weight_dtype, device)[1]
        with torch.autocast(device, dtype=torch.bfloat16):
            for w in (weight, None):
                expected = functional.rms_norm(x, x.shape[-1:], w)
                torch.testing.assert_close(rms_norm(x, w), expected)
                leaf = x.detach().requires_grad_()
                torch.testing.assert_close(rms_norm(leaf, w), expected)


SAMPLES = {
    "rms_norm": lambda x, w: (x, w, 1e-5),
    "_rms_norm_forward": lambda x, w: (x, w, None),
    "_rms_norm_backward": lambda x, w: (x.detach(), x, w, x.detach()[:, :1].clone(), True, True),
    "_add_rms_norm_forward": lambda x, w: (x, x.detach().exp(), w, 1e-5, 1.0),
}


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.filterwarnings("ignore:The .grad attribute")  # which torch 2.15 itself asks for
def test_opcheck(name, requires_grad, device):
    x, weight = (t.requires_grad_(requires_grad) for t in pair((3, 5), torch.float32, device))
    opcheck(getattr(OPS, name).default, SAMPLES[name](x, weight))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("needs_x", [False, True])
@pytest.mark.parametrize("needs_weight", [False, True])
@pytest.mark.filterwarnings("ignore:The .grad attribute")  # which torch 2.15 itself asks for
def test_opcheck_of_the_gradient(weighted, needs_x, needs_weight, device):
    x, weight = pair((3, 5), torch.float32, device)
    weight = weight if weighted else None
    _, rstd = OPS._rms_norm_forward(x, weight, 1e-5)
    arguments = (x, x, weight, rstd, needs_x, needs_weight)
    opcheck(OPS._rms_norm_backward.default, arguments)
    opcheck(OPS._rms_norm_backward.default, (*arguments, 1.0, x.exp()))


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_a_parameter_takes_the_fast_way_without_gradients(mode, monkeypatch):
    """Neither the op nor its entry is called."""
    from cuda_ext_example import _rms_norm

    monkeypatch.setattr(_rms_norm._norm.entry, "op", None)
    x, weight = torch.randn(3, 4), torch.nn.Parameter(torch.ones(4))
    with mode():
        assert torch.equal(rms_norm(x, weight), rms_norm(x, weight.detach()))


@pytest.mark.skipif(
    " " in torch.__file__, reason="torch links with libraries whose path has no space"
)
def test_inductor_and_export(device):
    x, weight = pair((6, 64), torch.float32, device)
    compiled = torch.compile(lambda x, w: rms_norm(x * 2, w).relu(), fullgraph=True)
    torch.testing.assert_close(compiled(x, weight), exact(x * 2, weight).relu().float())

    class Model(torch.nn.Module):
        def forward(self, x, weight):
            return rms_norm(x, weight)

    program = torch.export.export(Model(), (x, weight))
    assert "cuda_ext_example.rms_norm.default" in str(program.graph)
    torch.testing.assert_close(program.module()(x, weight), rms_norm(x, weight))


# --- out= -----------------------------------------------------------------------------------------


def test_out(floating, device):
    x, weight = pair((3, 64), floating, device)
    out = torch.empty_like(x)
    assert rms_norm(x, weight, out=out) is out
    assert torch.equal(out, rms_norm(x, weight))
    expected = rms_norm(x, weight)
    assert torch.equal(rms_norm(x, weight, out=x), expected)  # in place


@pytest.mark.parametrize("size", [5, 4100, 150_001])
def test_in_place_off_its_alignment(floating, device, size):
    x = torch.cat([torch.ones(1), torch.randn(3 * size)]).to(floating).to(device)[1:].view(3, size)
    expected = exact(x)
    assert_near(rms_norm(x, out=x), expected, floating, steps=32)


def test_views_that_torch_negates_lazily(device):
    z = torch.randn(3, 4, dtype=torch.complex64, device=device)
    x, weight = z.conj().imag, z[0].conj().imag
    assert x.is_neg()
    torch.testing.assert_close(rms_norm(x, weight), exact(-z.imag, -z[0].imag).float())
    expected = rms_norm(-x.resolve_neg(), -weight.resolve_neg())
    for view in (torch.zeros_like(z).conj().imag, torch.zeros_like(z.imag)):
        rms_norm(-x, -weight, out=view)
        torch.testing.assert_close(view.resolve_neg(), expected)
    with pytest.raises(RuntimeError, match="dtype complex64 is not supported"):
        rms_norm(z, out=z.conj())


def test_out_that_shares_memory_is_refused(device):
    memory = torch.randn(5, 4, device=device)
    square = memory[:4]
    kept = memory.clone()
    for x, weight, out in (
        (square, None, memory[1:]),
        (square.t(), None, square),
        (torch.randn(4, 4, device=device), memory[2], square),
    ):
        with pytest.raises(RuntimeError, match="out overlaps x or weight"):
            rms_norm(x, weight, out=out)
        assert torch.equal(memory, kept)
    with pytest.raises(RuntimeError, match="out must be contiguous"):
        rms_norm(torch.randn(4, 4, device=device), out=square.t())


def test_statistics_of_another_layout_are_refused(device):
    x = torch.randn(6, 4, device=device)
    for rstd in (torch.ones(12, device=device)[::2], torch.ones(5, device=device)):
        with pytest.raises(RuntimeError, match="state must hold one float32 for each row of x"):
            OPS._rms_norm_backward(x, x, None, rstd, True, False)


def test_autograd_notices_what_out_overwrites(device):
    x = torch.randn(3, 4, device=device, requires_grad=True)
    kept = x.exp()  # whose backward needs its result
    with torch.no_grad():
        rms_norm(torch.ones(3, 4, device=device), out=kept)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        kept.sum().backward()


def test_out_has_no_gradient(device):
    x = torch.randn(3, 4, device=device, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"autograd cannot follow out=.*leave out out="):
        rms_norm(x, out=torch.empty(3, 4, device=device))


def test_out_when_compiled(device):
    def into(x, weight, out):
        rms_norm(x, weight, out=out)
        return out + 1

    x, weight = pair((3, 64), torch.float32, device)
    out = torch.zeros_like(x)
    result = torch.compile(into, fullgraph=True, backend="aot_eager")(x, weight, out)
    torch.testing.assert_close(out, rms_norm(x, weight))
    torch.testing.assert_close(result, out + 1)


def test_out_is_one_call_in_a_traced_graph():
    """Inductor traces an op that writes twice, and fails if the second graph has more calls than the first."""
    x = torch.randn(3, 64)
    graph = make_fx(lambda x, out: OPS.rms_norm_out(x, out=out))(x, torch.zeros_like(x)).graph
    called = [node.target for node in graph.nodes if node.op == "call_function"]
    assert called == [OPS.rms_norm_out.default]


# --- What is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (lambda *_: (None,), TypeError, "rms_norm: x must be a tensor, not NoneType"),
        (lambda x, _: (x, 1.0), TypeError, "rms_norm: weight must be a tensor, not float"),
        (lambda x, _: (x, x), RuntimeError, r"rms_norm: weight must have the one dimension"),
        (lambda x, w: (x, w[1:]), RuntimeError, r"rms_norm: weight must have the one dimension"),
        (
            lambda x, w: (x, w.long()),
            RuntimeError,
            "dtype int64 is not supported; use one of float",
        ),
        (lambda x, _: (x[0, 0],), RuntimeError, "x must have at least one dimension"),
    ],
)
def test_errors(device, arguments, error, message):
    x, weight = pair((3, 4), torch.float32, device)
    with pytest.raises(error, match=message):
        rms_norm(*arguments(x, weight))


@pytest.mark.parametrize("arguments", [lambda x, w: (x, w[1:]), lambda x, w: (x, w.long())])
def test_errors_when_compiled(arguments):
    x, weight = pair((3, 4), torch.float32, "cpu")
    with pytest.raises(Exception, match="rms_norm: weight must be"):
        torch.compile(rms_norm, fullgraph=True, backend="eager")(*arguments(x, weight))


# --- A residual, and an offset of the weight ------------------------------------------------------


@pytest.mark.parametrize("weight_dtype", [None, *FLOATING], ids=str)
@pytest.mark.parametrize("columns", [1, 7, 128, 1000, 4100, 20_000])
def test_a_residual_is_added_first(floating, device, weight_dtype, columns):
    """What two calls give, for rows that the kernels hold, read twice, or find misaligned.

    On the CPU to the bit; on CUDA the norm may take another kernel, which sums in another order.
    """
    ulps = 0 if device == "cpu" else 4 * torch.finfo(floating).eps
    x, _ = pair((4, columns), floating, device)
    residual = pair((3, 4, columns), floating, device)[0][1]
    weight = None if weight_dtype is None else pair((1, columns), weight_dtype, device)[1]
    for view in (x, x[:, ::2], torch.cat([x[:1], x])[1:], x.mT.contiguous().mT, x[:0], x[1:2]):
        other = residual[: view.shape[0], : view.shape[1]]
        factors = None if weight is None else weight[: view.shape[1]]
        for offset in (0.0, 1.0):
            out, both = add_rms_norm(view, other, factors, 1e-5, offset)
            assert torch.equal(both, view + other)
            alone = rms_norm(both, factors, 1e-5, offset)
            torch.testing.assert_close(out, alone, rtol=ulps, atol=0.0, equal_nan=True)


@pytest.mark.parametrize("weight_dtype", FLOATING, ids=str)
def test_an_offset_is_added_to_the_weight_in_float32(floating, device, weight_dtype):
    """A small weight would be lost beside 1 in 16 bits: each result is as near as with exact weights."""
    x = pair((5, 300), floating, device)[0]
    weight = (pair((5, 300), torch.float64, device)[1] * 1e-3).to(weight_dtype)
    expected = exact(x, weight.double() + 1, 1e-5)
    for out in (rms_norm(x, weight, 1e-5, 1.0), rms_norm(x, weight, 1e-5, 1, out=x.clone())):
        assert_near(out, expected, floating, steps=4 if floating.itemsize > 2 else 0.51)
    assert torch.equal(rms_norm(x, None, 1e-5, 1.0), rms_norm(x, None, 1e-5))


@pytest.mark.parametrize("used", [(0,), (1,), (0, 1)], ids=str)
@pytest.mark.parametrize("needed", [(True, True, True), (True, False, False), (False, True, True)])
@pytest.mark.parametrize("offset", [0.0, 1.0])
def test_gradients_by_both_results(device, used, needed, offset):
    """The sum's own gradient is added to the norm's, where both, one or the other is used."""

    def reference(x, residual, weight):
        both = x + residual
        return functional.rms_norm(both, both.shape[-1:], weight + offset, 1e-5), both

    x, weight = pair((3, 4, 40), torch.float64, device)
    for layout in (lambda t: t, lambda t: t.transpose(0, 1).contiguous().transpose(0, 1)):
        tensors = [layout(x), layout(x.exp()), weight]
        tensors = [t.detach().requires_grad_(n) for t, n in zip(tensors, needed, strict=True)]
        leaves = [t for t in tensors if t.requires_grad]
        grads = []
        for norm in (lambda *t: add_rms_norm(*t, 1e-5, offset), reference):
            loss = sum((i + 1) * norm(*tensors)[i].sin().sum() for i in used)
            grads.append(torch.autograd.grad(loss, leaves, allow_unused=True))
        for ours, torchs in zip(*grads, strict=True):
            torch.testing.assert_close(ours, torchs)


def test_a_sum_whose_norm_is_not_used_may_be_overwritten():
    x, residual = (t.requires_grad_() for t in torch.ones(2, 3, 4))
    _, both = add_rms_norm(x, residual)
    both.mul_(3).sum().backward()
    assert x.grad.unique().tolist() == residual.grad.unique().tolist() == [3]


@pytest.mark.parametrize(
    ("residual", "message"),
    [
        (torch.ones(2, 3), "residual must have the shape of x"),
        (torch.ones(4), "residual must have the shape of x"),
        (torch.ones(2, 4, dtype=torch.float64), "x is float32 and residual is float64"),
    ],
)
def test_a_residual_is_like_x(residual, message):
    with pytest.raises(RuntimeError, match=f"add_rms_norm: {message}"):
        add_rms_norm(torch.ones(2, 4), residual)
    with pytest.raises(
        RuntimeError, match=r"add_rms_norm: residual must be torch\.float32 of shape"
    ):
        add_rms_norm(torch.ones(2, 4, device="meta"), residual.to("meta"))

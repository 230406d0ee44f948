"""Tests for any op: compare each op of the list with torch's own, under all that torch does with ops.

    from my_ext._ops import OPS
    from my_ext._opwright.testing import OpTests

    class TestOps(OpTests):
        ops = OPS

The tests come with the extension, so that an installed wheel can be tested anywhere. They need pytest, torch and
expecttest (for torch.library.opcheck). `python -m pytest` on a file like the above runs them, without the GPU
tests if there is no GPU. OPWRIGHT_TESTS=quick runs each test with one dtype per op.
"""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd.gradcheck import GradcheckError
from torch.utils._python_dispatch import TorchDispatchMode

from .library import PACKAGE
from .ops import Op, joined
from .registration import missing, overload
from .testing_cases import (
    BROADCASTS,
    LAYOUTS,
    arranged,
    assert_same,
    differentiable,
    leaves,
    needs_gpu,
    one_dtype,
    ours,
    points,
    random_pair,
    special_pair,
    torchs,
    with_dtypes,
)
from .testing_cuda import CudaTests

REFUSED = (RuntimeError, TypeError)
OTHER_DTYPES = ("bool", "uint16", "complex32", "float8_e4m3fn", "int64", "float16", "complex64")


def inexact(op: Op) -> list[str]:
    return [name for name in op.dtypes if getattr(torch, name).is_floating_point]


def with_gradient(op: Op) -> list[str]:
    """Returns the dtypes that can require a gradient."""
    if not op.differentiable:
        return []
    return [*inexact(op), *(name for name in op.dtypes if name.startswith("complex"))]


class OpTests(CudaTests):
    """All tests of every op in `ops`."""

    def test_the_library_has_the_op(self, op: Op) -> None:
        """Says what to add to csrc/ if it has not; the other tests leave out an op without kernels."""
        if not op.dtypes:
            overload(op.name)
        problems = [text for name, text in missing.items() if name.partition(".")[0] == op.name]
        assert not problems, "\n".join(problems)

    # --- Results ----------------------------------------------------------------------------------

    def test_results(self, op: Op, dtype: torch.dtype, device: str) -> None:
        """Checks the function and the op of torch.ops at every shape."""
        by_name = getattr(getattr(torch.ops, PACKAGE), op.name)
        for shape in op.shapes:
            x, y = random_pair(shape, dtype, device)
            expected = torchs(op)(x, y)
            assert_same(op, ours(op)(x, y), expected, f" of {list(shape)}")
            named = joined(by_name(*op.arguments_for(x, y)))
            assert_same(op, named, expected, f" of torch.ops, {shape}")

    @with_dtypes(with_gradient)
    def test_results_with_a_gradient(self, op: Op, dtype: torch.dtype, device: str) -> None:
        """Checks results under autograd, which may call other code than the kernel."""
        for shape in op.shapes:
            x, y = leaves(*random_pair(shape, dtype, device))
            result = ours(op)(x, y)
            assert result.requires_grad, (
                f"{op.name} has no gradient: give its Rules a backward, or its entry in the list differentiable=False"
            )
            with torch.no_grad():
                expected = torchs(op)(x, y)
            assert_same(op, result.detach(), expected, f" of {list(shape)} with a gradient")

    @with_dtypes(inexact)
    def test_nan_and_infinities(self, op: Op, dtype: torch.dtype, device: str) -> None:
        x, y = special_pair(op, dtype, device)
        # The CPU computes the reference, because torch's GPU kernels disagree about rows with an infinity.
        expected = torchs(op)(x.cpu(), y.cpu()).to(device)
        assert_same(op, ours(op)(x, y), expected, " of NaN, infinities and extremes")
        if op.differentiable:
            again = ours(op)(*leaves(x, y)).detach()
            assert_same(op, again, expected, " of NaN, infinities and extremes, with a gradient,")

    @pytest.mark.parametrize("layout", LAYOUTS)
    def test_layouts(self, op: Op, dtype: torch.dtype, device: str, layout: str) -> None:
        """Checks results, the strides that torch.compile expects, and that inputs are unchanged."""
        for x, y in arranged(op, layout, dtype, device):
            before = x.clone(), y.clone()
            actual = ours(op)(x, y)
            case = f" of {tuple(x.shape)}, strides {x.stride()} and {y.stride()},"
            assert_same(op, actual, torchs(op)(x, y), case)
            torch.testing.assert_close((x, y), before, rtol=0, atol=0, equal_nan=True)
            if not x.is_conj() and not y.is_conj():
                meta = ours(op)(
                    *(
                        torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device="meta")
                        for t in (x, y)
                    )
                )
                assert (meta.shape, meta.dtype) == (actual.shape, actual.dtype)
                assert meta.stride() == actual.stride(), (
                    f"{op.name}{case} gives strides {actual.stride()}; its reference gives {meta.stride()}"
                )

    @with_dtypes(lambda op: op.dtypes if op.elementwise else ())
    def test_broadcasting(self, op: Op, dtype: torch.dtype, device: str) -> None:
        for shapes in BROADCASTS:
            x, y = (random_pair(shape, dtype, device)[i] for i, shape in enumerate(shapes))
            for a, b in ((x, y), (y, x)):
                assert_same(op, ours(op)(a, b), torchs(op)(a, b), f" of {a.shape} and {b.shape}")

    # --- Gradients --------------------------------------------------------------------------------

    @with_dtypes(differentiable)
    @pytest.mark.filterwarnings("ignore:Input #:UserWarning")
    def test_gradients(self, op: Op, dtype: torch.dtype, device: str) -> None:
        """Compares the op's gradients with finite differences of the kernel, and second derivatives with finite
        differences of the first."""
        wide = dtype in (torch.float64, torch.complex128)
        steps = {} if wide else {"eps": 1e-2, "atol": 2e-2, "rtol": 2e-2, "nondet_tol": 1e-5}
        for shapes in SMALL_BROADCASTS if op.elementwise else ((op.small, op.small),):
            x, y = (points(op, shape, dtype, device)[i] for i, shape in enumerate(shapes))
            inputs = leaves(x, y)
            try:
                torch.autograd.gradcheck(lambda *t: _Kernel.apply(ours(op), *t), inputs, **steps)
                if wide:
                    torch.autograd.gradgradcheck(_with_both(op), inputs)
            except GradcheckError as error:
                raise AssertionError(
                    f"{op.name}: its backward, or without one its reference, does not give the kernel's "
                    f"derivative (input 0 is x, 1 is y; numerical is the kernel's): {error}"
                ) from None

    @with_dtypes(lambda op: [name for name in differentiable(op) if name == "float64"])
    def test_forward_mode_and_functional_gradients(
        self, op: Op, dtype: torch.dtype, device: str
    ) -> None:
        x, y = points(op, op.small, dtype, device)
        tangents = torch.cos(x), torch.cos(y)
        primal, tangent = torch.func.jvp(ours(op), (x, y), tangents)
        assert_same(op, primal, torchs(op)(x, y), " in forward mode")
        step = 1e-6
        above, below = (
            ours(op)(x + sign * step * tangents[0], y + sign * step * tangents[1])
            for sign in (1, -1)
        )
        torch.testing.assert_close(tangent, (above - below) / (2 * step), rtol=1e-5, atol=1e-6)
        value, pull = torch.func.vjp(ours(op), x, y)
        assert_same(op, value, torchs(op)(x, y), " under torch.func")
        functional = pull(torch.cos(value))
        expected = torch.autograd.grad(
            _with_both(op)(*(inputs := leaves(x, y))), inputs, torch.cos(value)
        )
        torch.testing.assert_close(functional, expected)

    # --- Transforms -------------------------------------------------------------------------------

    @with_dtypes(one_dtype)
    @pytest.mark.filterwarnings("ignore::UserWarning")
    @pytest.mark.parametrize("in_dims", [(0, 0), (1, 0), (0, None), (None, 1), (-1, -1)], ids=str)
    def test_vmap(
        self, op: Op, dtype: torch.dtype, device: str, in_dims: tuple[int | None, ...]
    ) -> None:
        cubes = random_pair([4] * (len(op.small) + 1), dtype, device)
        x, y = (t if dim is not None else t[0] for t, dim in zip(cubes, in_dims, strict=True))
        actual, expected = (torch.vmap(f(op), in_dims)(x, y) for f in (ours, torchs))
        assert_same(op, actual, expected, f" under vmap over {in_dims}")

    @with_dtypes(one_dtype)
    @pytest.mark.parametrize("layout", ["dense", "transposed", "strided"])
    def test_opcheck(self, op: Op, dtype: torch.dtype, device: str, layout: str) -> None:
        """Runs torch.library.opcheck on each overload that the function calls, without and with a gradient."""
        x, y = (LAYOUTS[layout](t) for t in random_pair(op.small, dtype, device))
        with _Recorder(op.name) as recorder:
            ours(op)(x, y)
        assert recorder.calls, f"{op.name} calls no op of torch.ops.{PACKAGE} of its name"
        for called, arguments in recorder.calls.items():
            torch.library.opcheck(called, arguments)
            if op.differentiable and dtype.is_floating_point:
                torch.library.opcheck(called, _requiring_grad(arguments))

    @with_dtypes(one_dtype)
    @pytest.mark.filterwarnings("ignore:The .grad attribute")
    @pytest.mark.parametrize("dynamic", [False, True])
    def test_compile(self, op: Op, dtype: torch.dtype, device: str, dynamic: bool) -> None:
        """Checks results and gradients under torch.compile without graph breaks."""
        torch._dynamo.reset()
        compiled = torch.compile(
            lambda *args: joined(op.function(*args)),
            fullgraph=True,
            dynamic=dynamic,
            backend="aot_eager",
        )
        for rows in (3, 5):
            shape = (rows, *op.small[1:])
            x, y = points(op, shape, dtype, device)
            assert_same(op, compiled(*op.arguments_for(x, y)), torchs(op)(x, y), " compiled")
            if op.differentiable and dtype.is_floating_point:
                inputs = leaves(x, y)
                results = compiled(*op.arguments_for(*inputs)), torchs(op)(*inputs)
                grads = (torch.autograd.grad(r.sum(), inputs, allow_unused=True) for r in results)
                torch.testing.assert_close(*grads)

    # --- Errors -----------------------------------------------------------------------------------

    @with_dtypes(lambda op: [name for name in OTHER_DTYPES if name not in op.dtypes])
    @pytest.mark.filterwarnings("ignore:ComplexHalf support")
    def test_other_dtypes_are_refused(self, op: Op, dtype: torch.dtype, device: str) -> None:
        x = torch.ones(op.small, device=device).to(dtype)
        self.assert_refused(op, x, x)

    @with_dtypes(one_dtype)
    @pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
    def test_sparse_tensors_are_refused(self, op: Op, dtype: torch.dtype, device: str) -> None:
        x = torch.ones(op.small, dtype=dtype, device=device)
        for sparse in (x.to_sparse(), x.to_sparse_csr()):
            self.assert_refused(op, sparse, x, said="[Ss]parse|dense")

    @with_dtypes(lambda op: op.dtypes[1:2] if op.takes_two_tensors and not op.mixes_dtypes else ())
    def test_mixed_dtypes_are_refused(self, op: Op, dtype: torch.dtype, device: str) -> None:
        x = torch.ones(op.small, dtype=dtype, device=device)
        self.assert_refused(op, x, x.to(getattr(torch, op.dtypes[0])))

    @needs_gpu
    @with_dtypes(lambda op: one_dtype(op) if op.takes_two_tensors else ())
    def test_mixed_devices_are_refused(self, op: Op, dtype: torch.dtype) -> None:
        x = torch.ones(op.small, dtype=dtype)
        self.assert_refused(op, x, x.cuda())
        self.assert_refused(op, x.cuda(), x)

    @needs_gpu
    @with_dtypes(lambda op: op.dtypes if op.elementwise and op.takes_two_tensors else ())
    def test_a_number_on_the_cpu_beside_a_tensor_on_the_gpu(
        self, op: Op, dtype: torch.dtype
    ) -> None:
        """Checks that a CPU tensor without dimensions is accepted, as torch's own ops accept it."""
        x, y = random_pair((3, 5), dtype, "cuda")
        number = y[0, 0].cpu()
        for pair in ((x, number), (number, x)):
            assert_same(op, ours(op)(*pair), torchs(op)(*pair), " with a number on the CPU")
        if op.differentiable and dtype.is_floating_point:
            inputs = leaves(x, number)
            torch.autograd.grad(ours(op)(*inputs).sum(), inputs)

    def assert_refused(self, op: Op, x: Tensor, y: Tensor, said: str = "") -> None:
        """Expects an error that names the op or matches `said`, and that the op works afterwards."""
        with pytest.raises(REFUSED, match=said or op.name):
            ours(op)(x, y)
        dtype = getattr(torch, op.dtypes[0])
        for device in {"cpu", x.device.type, y.device.type}:
            good = random_pair(op.small, dtype, device)
            assert_same(op, ours(op)(*good), torchs(op)(*good), " after an error")


SMALL_BROADCASTS = (((2, 3), (2, 3)), ((2, 3), (3,)), ((2, 1), (1, 3)))


class _Kernel(torch.autograd.Function):
    """Runs the kernel without autograd forward and the op's own gradient backward, for gradcheck to compare."""

    @staticmethod
    def forward(ctx: Any, function: Any, *tensors: Tensor) -> Any:
        ctx.function = function
        ctx.save_for_backward(*tensors)
        return function(*(tensor.detach() for tensor in tensors))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        with torch.enable_grad():
            inputs = leaves(*ctx.saved_tensors)
            out = ctx.function(*inputs)
            return (None, *torch.autograd.grad(out, inputs, grads, allow_unused=True))


def _with_both(op: Op) -> Any:
    """Returns the op plus zero times x and y, so that both have a gradient even if the op ignores y."""
    return lambda x, y: ours(op)(x, y) + 0 * (x.sum() + y.sum())


class _Recorder(TorchDispatchMode):
    """Records which overloads of one op are called, each with its last arguments."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name, self.calls = f"{PACKAGE}::{name}", dict[Any, tuple[Any, ...]]()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func._schema.name == self.name:
            self.calls[func] = args
        return func(*args, **(kwargs or {}))


def _requiring_grad(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(
        value.detach().requires_grad_() if isinstance(value, Tensor) else value
        for value in arguments
    )

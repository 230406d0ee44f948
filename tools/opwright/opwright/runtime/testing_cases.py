"""Cases for the tests of any op: ops, dtypes, devices, inputs, layouts, and when results agree."""

import itertools
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor

from .ops import Op, joined

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
Choice = Callable[[Op], Iterable[str]]


def dtypes_of(op: Op) -> Iterable[str]:
    """Returns every dtype that the library has kernels for."""
    return op.dtypes


def differentiable(op: Op) -> Iterable[str]:
    """Returns the dtypes exact enough for finite differences: float64 or else float32, and complex128."""
    floating = next((name for name in ("float64", "float32") if name in op.dtypes), None)
    found = [floating, "complex128" if "complex128" in op.dtypes else None]
    return filter(None, found) if op.differentiable else ()


def one_dtype(op: Op) -> Iterable[str]:
    """Returns one dtype: float32 if there are kernels for it, or the first."""
    return ("float32",) if "float32" in op.dtypes else op.dtypes[:1]


def _quickly(names: Iterable[str]) -> list[str]:
    """Returns all names, or with OPWRIGHT_TESTS=quick one of them: float32 or else the first."""
    found = list(names)
    if os.environ.get("OPWRIGHT_TESTS") != "quick":
        return found
    return ["float32"] if "float32" in found else found[:1]


def with_dtypes(choice: Choice) -> Callable[[Any], Any]:
    """Chooses the dtypes that a test runs with; the default is all of them."""

    def mark(function: Any) -> Any:
        function.choice = choice
        return function

    return mark


class Cases:
    """Parametrizes a subclass's tests with the ops of the list, their dtypes, and this machine's devices."""

    ops: ClassVar[Sequence[Op]] = ()

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        if "dtype" in metafunc.fixturenames:
            choice = getattr(metafunc.function, "choice", dtypes_of)
            ops = [op for op in self.ops if op.dtypes]  # a test of its own complains of the others
            cases = [(op, getattr(torch, name)) for op in ops for name in _quickly(choice(op))]
            ids = [f"{op.name}-{str(dtype).removeprefix('torch.')}" for op, dtype in cases]
            metafunc.parametrize(("op", "dtype"), cases, ids=ids)
        elif "op" in metafunc.fixturenames:
            metafunc.parametrize("op", self.ops, ids=[op.name for op in self.ops])
        if "device" in metafunc.fixturenames:
            metafunc.parametrize(
                "device", ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
            )


# --- Inputs ---------------------------------------------------------------------------------------


def random_pair(
    shape: Sequence[int], dtype: torch.dtype, device: str = "cpu"
) -> tuple[Tensor, ...]:
    """Returns two tensors of one shape: integers from the dtype's whole range, other numbers around zero."""
    tensors = []
    # The seeds differ because many ops have no derivative where x equals y.
    for seed in range(2):
        random = torch.Generator().manual_seed(seed)
        if dtype.is_floating_point or dtype.is_complex:
            wide = torch.complex128 if dtype.is_complex else torch.float64
            tensor = torch.randn(shape, dtype=wide, generator=random) * 8
        else:
            limits = torch.iinfo(dtype)
            tensor = torch.randint(limits.min, limits.max, shape, generator=random)
        tensors.append(tensor.to(device, dtype))
    return tuple(tensors)


def special_pair(op: Op, dtype: torch.dtype, device: str) -> tuple[Tensor, ...]:
    """Returns every pair of special values; for ops of rows, tensors with one special value per row."""
    limits = torch.finfo(dtype)
    extremes = [limits.max, limits.min, limits.tiny, limits.tiny / 2]
    values = [float("nan"), float("inf"), float("-inf"), 0.0, -0.0, 1.0, -2.5, *extremes]
    if op.elementwise:
        pairs = torch.tensor(list(itertools.product(values, values)), dtype=torch.float64)
        return tuple(column.contiguous().to(device, dtype) for column in pairs.T)
    x, y = random_pair((len(values), 37), dtype, device)
    x[:, 3] = y[:, 5] = torch.tensor(values, dtype=torch.float64).to(device, dtype)
    return x, y


def points(op: Op, shape: Sequence[int], dtype: torch.dtype, device: str) -> tuple[Tensor, ...]:
    """Returns points to differentiate at: around zero, or positive ones if torch's op is not finite there."""
    x, y = (tensor / 8 for tensor in random_pair(shape, dtype, device))
    if torch.isfinite(torchs(op)(x, y)).all():
        return x, y
    return x.abs().to(dtype) + 0.1, y.abs().to(dtype) + 0.1


LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "dense": lambda t: t,
    "strided": lambda t: t.repeat_interleave(2, -1)[..., ::2],
    "rows apart": lambda t: t.repeat_interleave(2, 0)[::2],
    "transposed": lambda t: t.transpose(0, -1).contiguous().transpose(0, -1),
    "expanded": lambda t: t[:1].expand(t.shape),
    "overlapping": lambda t: t.flatten().as_strided(t.shape, [1] * t.dim()),
    "misaligned": lambda t: torch.cat([t.flatten()[:1], t.flatten()])[1:].view(t.shape),
    "empty": lambda t: t[..., :0],
    "conjugated": lambda t: t.conj(),
    "negated": lambda t: torch._neg_view(t) if t.is_floating_point() else t,
}


def arranged(
    op: Op, layout: str, dtype: torch.dtype, device: str
) -> Iterable[tuple[Tensor, Tensor]]:
    """Yields pairs in which both tensors, only the first, or only the second has the layout."""
    arrange = LAYOUTS[layout]
    for shape in ((6, 35), (2, 3, 4, 5), (7,)) if op.elementwise else op.shapes[1:3]:
        x, y = random_pair(shape, dtype, device)
        yield arrange(x), arrange(y)
        if layout not in ("dense", "empty"):
            yield arrange(x), y
            yield x, arrange(y)


BROADCASTS = (
    *(((3, 4), (4,)), ((3, 1), (1, 4)), ((2, 1, 5), (3, 1)), ((), (2, 3)), ((), ())),
    *(((1,), (7,)), ((0, 3), (1, 3)), ((2, 3, 4, 5), (1, 3, 1, 1)), ((1, 1, 1), (1,))),
)


# --- Calls and results ----------------------------------------------------------------------------


def ours(op: Op) -> Callable[..., Tensor]:
    """Returns the op as a function of x and y."""
    return lambda x, y: joined(op.function(*op.arguments_for(x, y)))


def torchs(op: Op) -> Callable[..., Tensor]:
    """Returns torch's own op as a function of x and y."""
    own = op.torchs_own()
    return lambda x, y: joined(own(*op.arguments_for(x, y, reference=True)))


def leaves(*tensors: Tensor) -> list[Tensor]:
    """Returns copies that require a gradient; copies of dense tensors keep their strides."""
    return [tensor.detach().clone().requires_grad_() for tensor in tensors]


def assert_same(op: Op, actual: Tensor, expected: Tensor, case: str = "") -> None:
    """Fails unless the op's result equals torch's within the op's tolerance."""
    limits = torch.finfo(expected.dtype) if op.tolerance else None
    rtol = op.tolerance * limits.eps if limits else 0.0
    atol = rtol * limits.smallest_normal if limits else 0.0  # the rounding error of subnormals
    torch.testing.assert_close(
        *(actual.resolve_conj(), expected.resolve_conj()),
        **{"rtol": rtol, "atol": atol, "equal_nan": True},
        msg=lambda text: f"{op.name}{case} is not {op.reference}({op.reference_arguments}): {text}",
    )

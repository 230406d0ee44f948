"""What the package's tests share: this machine's devices, every dtype, inputs that are not trivial.

These tests need only pytest, hypothesis, torch and the installed package, so that any wheel
can be tested anywhere.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

# Whether torch's compiler may use vector instructions changes nothing for the ops; finding out takes it long.
os.environ.setdefault("TORCHINDUCTOR_VEC_ISA_OK", "0")
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
import torch

from cuda_ext_example import my_add, my_fast_add
from cuda_ext_example._ops import OPS
from cuda_ext_example._opwright.ops import Op, joined
from cuda_ext_example._opwright.testing_cases import needs_gpu as needs_gpu

QUICK = os.environ.get("OPWRIGHT_TESTS") == "quick"  # one dtype of each kind
FLOATING = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
INTEGER = [torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8]
COMPLEX = [torch.complex64, torch.complex128]
DTYPES = FLOATING + INTEGER + COMPLEX
DEVICES = ["cpu"] + (["cuda"] if torch.cuda.is_available() else [])


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(
    params=[torch.bfloat16, torch.int64, torch.complex64] if QUICK else DTYPES,
    ids=lambda dtype: str(dtype).removeprefix("torch."),
)
def dtype(request: pytest.FixtureRequest) -> torch.dtype:
    return request.param


@pytest.fixture(params=[my_add, my_fast_add], ids=["my_add", "my_fast_add"])
def add(request: pytest.FixtureRequest) -> Callable[..., torch.Tensor]:
    return request.param


def make(shape: tuple[int, ...], dtype: torch.dtype, device: str = "cpu") -> torch.Tensor:
    """Random elements over the dtype's whole range; for floats also infinities and NaN."""
    if dtype in INTEGER:
        limits = torch.iinfo(dtype)
        tensor = torch.randint(limits.min, limits.max, shape, dtype=torch.int64).to(dtype)
    else:
        tensor = (
            torch.randn(shape, dtype=torch.complex128 if dtype in COMPLEX else torch.float64) * 50
        ).to(dtype)
        flat = tensor.view(-1)
        if flat.numel() > 8 and dtype in FLOATING:
            limits = torch.finfo(dtype)
            special = [
                float("inf"),
                float("-inf"),
                float("nan"),
                limits.max,
                limits.tiny,
                limits.tiny / 2,
                -0.0,
            ]
            flat[: len(special)] = torch.tensor(special, dtype=torch.float64).to(dtype)
    return tensor.to(device)


def assert_same(actual: torch.Tensor, expected: torch.Tensor) -> None:
    """Same values to the last bit, dtype, device, shape and strides."""
    torch.testing.assert_close(actual, expected, rtol=0, atol=0, equal_nan=True)
    assert actual.stride() == expected.stride()


@dataclass(frozen=True)
class Differentiable:
    """An op of the list as a function of the tensors that it is differentiable in, beside torch's own."""

    name: str
    function: Callable[..., torch.Tensor]
    reference: Callable[..., torch.Tensor]
    shapes: tuple[tuple[int, ...], ...]
    sees_every_way: bool

    def __str__(self) -> str:
        return self.name

    def tensors(self, device: str) -> list[torch.Tensor]:
        return [torch.randn(shape, dtype=torch.float64, device=device) for shape in self.shapes]

    def program(self, function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        """Something that is not linear, around the op."""
        return lambda first, *rest: torch.sin(first) * function(first * first, *rest)


def _differentiable() -> Iterator[Differentiable]:
    seen: set[str] = set()
    for op in OPS:
        if not op.differentiable or "float64" not in op.dtypes:
            continue
        shapes = ((2, 3), (1, 3))[: 1 + op.takes_two_tensors]
        by_name = getattr(torch.ops.cuda_ext_example, op.name)
        torchs = _of_tensors(op, op.torchs_own(), reference=True)
        first = op.reference + op.reference_arguments not in seen  # the others have its rules
        seen.add(op.reference + op.reference_arguments)
        for name, function in ((op.name, op.function), (f"{op.name} op", by_name)):
            every = first and function is op.function
            yield Differentiable(name, _of_tensors(op, function), torchs, shapes, every)


def _of_tensors(op: Op, function: Callable[..., torch.Tensor], reference: bool = False) -> Any:
    def call(x: torch.Tensor, y: torch.Tensor | None = None) -> torch.Tensor:
        return joined(function(*arguments(x, x if y is None else y)))

    text = op.reference_arguments if reference else op.arguments
    arguments = eval(f"lambda x, y, n=0.5: ({text},)")  # which torch.compile can read
    return call


DIFFERENTIABLE = list(_differentiable())

"""What the package's tests share: this machine's devices, every dtype, inputs that are not trivial.

These tests need nothing but pytest, hypothesis, torch and the installed package, so that any wheel
can be tested anywhere.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

# Whether torch's compiler may use vector instructions changes nothing for the ops; finding out takes it long.
os.environ.setdefault("TORCHINDUCTOR_VEC_ISA_OK", "0")
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
import torch

import cuda_ext_example

FLOATING = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
INTEGER = [torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8]
COMPLEX = [torch.complex64, torch.complex128]
DTYPES = FLOATING + INTEGER + COMPLEX
DEVICES = ["cpu"] + (["cuda"] if torch.cuda.is_available() else [])

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=DTYPES, ids=lambda dtype: str(dtype).removeprefix("torch."))
def dtype(request: pytest.FixtureRequest) -> torch.dtype:
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
    """An op as a function of the tensors that it is differentiable in, beside torch's own."""

    name: str
    function: Callable[..., torch.Tensor]
    reference: Callable[..., torch.Tensor]
    shapes: tuple[tuple[int, ...], ...]
    sees_every_way: bool = False

    def __str__(self) -> str:
        return self.name

    def tensors(self, device: str) -> list[torch.Tensor]:
        return [torch.randn(shape, dtype=torch.float64, device=device) for shape in self.shapes]

    def program(self, function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        """Something that is not linear, around the op."""
        return lambda first, *rest: torch.sin(first) * function(first * first, *rest)


def _differentiable() -> list[Differentiable]:
    ops = torch.ops.cuda_ext_example
    adds = {
        "my_add": cuda_ext_example.my_add,
        "my_fast_add": cuda_ext_example.my_fast_add,
        "my_add op": ops.my_add,
        "my_fast_add op": ops.my_fast_add.default,
    }
    cust_adds = {"cust_add": cuda_ext_example.cust_add, "cust_add op": ops.cust_add}
    cases = [Differentiable(name, add, torch.add, ((2, 3), (3,))) for name, add in adds.items()]
    for name, add in cust_adds.items():
        case = Differentiable(name, lambda x, add=add: add(x, 2.5), lambda x: x + 2.5, ((2, 3),))
        cases.append(case)

    def torchs(x: torch.Tensor, weight: torch.Tensor | None = None) -> torch.Tensor:
        return torch.nn.functional.rms_norm(x, x.shape[-1:], weight)

    norm, norm_op = cuda_ext_example.rms_norm, ops.rms_norm.default
    cases += [
        Differentiable("rms_norm", norm, torchs, ((2, 3), (3,))),
        Differentiable("rms_norm without weight", norm, torchs, ((2, 3),)),
        Differentiable("rms_norm of a vector", norm, torchs, ((3,), (3,))),
        Differentiable("rms_norm op", norm_op, torchs, ((2, 2, 3), (3,))),
    ]
    see_every_way = ("my_add", "cust_add", "rms_norm")
    return [replace(case, sees_every_way=case.name in see_every_way) for case in cases]


DIFFERENTIABLE = _differentiable()

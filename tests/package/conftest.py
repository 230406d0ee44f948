"""What the package's tests share: this machine's devices, every dtype, inputs that are not trivial.

These tests need nothing but pytest, hypothesis, torch and the installed package, so that any wheel
can be tested anywhere.
"""

import pytest
import torch

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

"""Runs each op on a device, for every dtype, against sums that Python made."""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from cuda_ext_example import cust_add, my_add, my_fast_add

DTYPES = (
    *("float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8"),
    *("complex64", "complex128"),
)
VALUE = 3
# Small enough for every dtype to hold exactly; as many as leave a tail behind every vector.
A = [i % 40 for i in range(1021)]
B = [i % 7 for i in range(1021)]

OPS: dict[str, tuple[Callable[[Tensor, Tensor], Tensor], list[int]]] = {
    "my_add": (my_add, [a + b for a, b in zip(A, B, strict=True)]),
    "my_fast_add": (my_fast_add, [a + b for a, b in zip(A, B, strict=True)]),
    "cust_add": (lambda a, _: cust_add(a, VALUE), [a + VALUE for a in A]),
}
LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "dense": lambda x: x,
    "strided": lambda x: x.repeat_interleave(2)[::2],
}


@dataclass
class SelfTest:
    device: str
    checks: int = 0
    failures: list[str] = field(default_factory=list)


def self_test(device: str) -> SelfTest:
    """Each op, dtype and layout once."""
    result = SelfTest(device)
    for name, (op, expected) in OPS.items():
        for dtype in DTYPES:
            for layout, arrange in LAYOUTS.items():
                result.checks += 1
                try:
                    a, b = (arrange(_tensor(values, dtype, device)) for values in (A, B))
                    problem = _difference(op(a, b).tolist(), expected)
                except Exception as error:  # whatever it is, it is what the user wants to know
                    problem = str(error)
                if problem is not None:
                    result.failures.append(f"{name}, {dtype}, {layout}: {problem}")
    return result


def _tensor(values: list[int], dtype: str, device: str) -> Tensor:
    return torch.tensor(values, dtype=getattr(torch, dtype), device=device)


def _difference(got: list[complex], expected: list[int]) -> str | None:
    for i, (is_, should_be) in enumerate(zip(got, expected, strict=True)):
        if is_ != should_be:
            return f"element {i} is {is_}, not {should_be}"
    return None

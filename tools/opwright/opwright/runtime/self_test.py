"""Compares each op on a device, for every dtype, with torch's own on the CPU."""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from .ops import Op, joined

LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "dense": lambda x: x,
    "strided": lambda x: x.repeat_interleave(2, dim=0)[::2],
}


@dataclass
class SelfTest:
    device: str
    checks: int = 0
    failures: list[str] = field(default_factory=list)


def self_test(device: str, ops: tuple[Op, ...]) -> SelfTest:
    """Tests each op, dtype and layout once."""
    result = SelfTest(device)
    for op in ops:
        for dtype in op.dtypes:
            for layout, arrange in LAYOUTS.items():
                result.checks += 1
                try:
                    problem = _problem(op, getattr(torch, dtype), device, arrange)
                except Exception as error:  # any error is a failure to report
                    problem = str(error)
                if problem is not None:
                    result.failures.append(f"{op.name}, {dtype}, {layout}: {problem}")
    return result


def _problem(
    op: Op, dtype: torch.dtype, device: str, arrange: Callable[[Tensor], Tensor]
) -> str | None:
    # Every dtype holds these values exactly, and the last elements do not fill a vector.
    shape = op.shapes[-2]
    steps = torch.arange(torch.Size(shape).numel()).view(shape)
    x, y = (arrange((steps % period).to(dtype)) for period in (40, 7))
    expected = joined(op.torchs_own()(*op.arguments_for(x, y, reference=True)))
    actual = joined(op.function(*op.arguments_for(x.to(device), y.to(device)))).cpu()
    if actual.shape != expected.shape:
        return f"the shape is {list(actual.shape)}, not {list(expected.shape)}"
    eps = torch.finfo(dtype).eps if op.tolerance else 0.0
    wrong = (actual != expected) & ~(
        (actual - expected).abs() <= op.tolerance * eps * expected.abs()
    )
    for where in wrong.flatten().nonzero()[:1].flatten().tolist():
        is_, should_be = (tensor.flatten()[where].item() for tensor in (actual, expected))
        return f"element {where} is {is_}, not {should_be}"
    return None

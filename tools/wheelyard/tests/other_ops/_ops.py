"""Defines other ops than the template's, for the test that replaces them."""

from typing import Any

import torch
from my_ext._opwright import elementwise
from my_ext._opwright.ops import ROWS, Op
from my_ext._opwright.registration import Entry, Rules
from torch import Tensor

__all__ = ["excess", "reversed_rows"]


def excess(a: Tensor, b: Tensor) -> Tensor:
    """Returns a - b where that is positive, and 0 elsewhere."""
    return _excess(a, b)


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    elementwise.save_shapes(ctx, inputs, output)
    ctx.save_for_backward(output)


def _excess_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    (output,) = ctx.saved_tensors
    kept = torch.where(output > 0, grad, 0)
    return elementwise.gradients(ctx, kept, -kept)


_excess = Entry(
    "excess",
    Rules(lambda a, b: torch.relu(a - b), elementwise.batch, _save, _excess_backward),
    twin="_excess",
)


def reversed_rows(x: Tensor) -> Tensor:
    """Returns each row from its end to its start."""
    return _reversed_rows(x)


_reversed_rows = Entry(
    "reversed_rows",
    Rules(lambda x: x.contiguous().flip(-1), None, None, lambda _, grad: (grad.flip(-1),)),
)

OPS = (
    Op(excess, "x, y", "(lambda x, y: torch.relu(x - y))"),
    Op(reversed_rows, "x", "torch.flip", "x, (-1,)", shapes=ROWS, moves=2),
)

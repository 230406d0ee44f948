"""What users call, what torch must know of each op, and the list that tests, doctor and smoke test go by."""

from typing import Any

import torch
from torch import Tensor

from my_ext._opwright import elementwise
from my_ext._opwright.ops import ROWS, Op
from my_ext._opwright.registration import Entry, Rules

# --- scale_add: csrc/scale_add.h ------------------------------------------------------------------


def scale_add(a: Tensor, b: Tensor, alpha: float) -> Tensor:
    """Returns a + alpha * b; shapes broadcast. Differentiable in both tensors."""
    return _scale_add(a, b, alpha)


def _reference_scale_add(a: Tensor, b: Tensor, alpha: float) -> Tensor:
    return torch.add(a, b, alpha=alpha)


def _save_alpha(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.alpha = inputs[2]
    elementwise.save_shapes(ctx, inputs, output)


def _scale_add_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    return elementwise.gradients(ctx, grad, grad * ctx.alpha, None)


_scale_add = Entry(
    "scale_add",
    Rules(_reference_scale_add, elementwise.batch, _save_alpha, _scale_add_backward),
    twin="_scale_add",
)

# --- running_sum: csrc/running_sum.cu and running_sum_cpu.cpp ---------------------------------------


def running_sum(x: Tensor) -> Tensor:
    """Returns the sums along the last dimension, as torch.cumsum does. Differentiable."""
    return _running_sum(x)


def _running_sum_backward(_: Any, grad: Tensor) -> tuple[Tensor]:
    return (grad.flip(-1).cumsum(-1).flip(-1),)


_running_sum = Entry(
    "running_sum", Rules(lambda x: torch.cumsum(x, -1), None, None, _running_sum_backward)
)

# --- How each is tried: its arguments, of tensors x and y and a number n, and what torch calls the same -----
OPS = (
    Op(scale_add, "x, y, n", "(lambda x, y, n: torch.add(x, y, alpha=n))", tolerance=1),
    Op(running_sum, "x", "torch.cumsum", "x, -1", shapes=ROWS, moves=2, tolerance=8),
)

"""Defines what users call, what torch must know of each op, and the list of ops for tests, doctor and smoke test."""

from typing import Any

import torch
from torch import Tensor

from my_ext._opwright import elementwise
from my_ext._opwright.ops import ROWS, Op
from my_ext._opwright.registration import Entry, Rules

__all__ = ["running_max", "scale_add"]

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

# --- running_max: csrc/running_max.cu and running_max_cpu.cpp ---------------------------------------


def running_max(x: Tensor) -> Tensor:
    """Returns the largest number so far along the last dimension, as torch.cummax does. Differentiable."""
    return _running_max(x)


def _reference_running_max(x: Tensor) -> Tensor:
    return torch.cummax(x, -1).values


def _save_x(ctx: Any, inputs: tuple[Any, ...], _: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _running_max_backward(ctx: Any, grad: Tensor) -> tuple[Tensor]:
    (x,) = ctx.saved_tensors
    return (torch.zeros_like(x).scatter_add(-1, torch.cummax(x, -1).indices, grad),)


_running_max = Entry(
    "running_max", Rules(_reference_running_max, None, _save_x, _running_max_backward)
)

# --- How each is tried: its arguments, of tensors x and y and a number n, and what torch calls the same -----
OPS = (
    Op(scale_add, "x, y, n", "(lambda x, y, n: torch.add(x, y, alpha=n))", tolerance=1),
    Op(running_max, "x", "(lambda x: torch.cummax(x, -1).values)", shapes=ROWS, moves=2),
)

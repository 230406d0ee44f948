"""The demo's functions and their list."""

from typing import Any

import torch
from torch import Tensor

from demo_ext._opwright import elementwise
from demo_ext._opwright.ops import ROWS, Op
from demo_ext._opwright.registration import Entry, Rules
from demo_ext._opwright.rows import Norm


def scale_add(a: Tensor, b: Tensor, alpha: float) -> Tensor:
    """Returns a + alpha * b."""
    return _scale_add(a, b, alpha)


def _reference(a: Tensor, b: Tensor, alpha: float) -> Tensor:
    return torch.add(a, b, alpha=alpha)


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.alpha = inputs[2]
    elementwise.save_shapes(ctx, inputs, output)


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    return elementwise.gradients(ctx, grad, grad * ctx.alpha, None)


_scale_add = Entry(
    "scale_add", Rules(_reference, elementwise.batch, _save, _backward), twin="_scale_add"
)


def softsign(x: Tensor) -> Tensor:
    """Returns x / (1 + |x|)."""
    return _softsign(x)


def _save_input(ctx: Any, inputs: tuple[Any, ...], _: Tensor) -> None:
    ctx.save_for_backward(inputs[0])


def _softsign_backward(ctx: Any, grad: Tensor) -> tuple[Tensor]:
    return (grad / (1 + ctx.saved_tensors[0].abs()).square(),)


_softsign = Entry(
    "softsign",
    Rules(lambda x: x.contiguous() / (1 + x.abs()), None, _save_input, _softsign_backward),
)


def mean_norm(x: Tensor, weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    """Divides each row by its mean magnitude."""
    return _mean_norm(mean_norm, x, weight, eps)


class _MeanNorm(Norm):
    @staticmethod
    def state(x: Tensor, number: float | None) -> Tensor:
        return 1 / (x.abs().mean(-1, keepdim=True) + (number or 0))

    @staticmethod
    def apply(x: Tensor, state: Tensor) -> Tensor:
        return x * state

    @staticmethod
    def gradient(grad: Tensor, x: Tensor, state: Tensor) -> Tensor:
        return state * (grad - x.sign() * (grad * x * state).mean(-1, keepdim=True))

    @staticmethod
    def state_gradient(grad: Tensor, x: Tensor, state: Tensor) -> Tensor:
        return grad * -state.square() * x.sign() / x.shape[-1]


_mean_norm = _MeanNorm("mean_norm")
OPS = (
    Op(scale_add, "x, y, n", "(lambda x, y, n: torch.add(x, y, alpha=n))", tolerance=1),
    Op(softsign, "x", "torch.nn.functional.softsign", moves=2, tolerance=2),
    Op(
        mean_norm,
        "x, y[0], 1e-5",
        "(lambda x, w: x / (x.abs().mean(-1, keepdim=True) + 1e-5) * w)",
        "x, y[0]",
        shapes=ROWS,
        moves=2,
        tolerance=4,
        mixes_dtypes=True,
    ),
)

"""silu_mul: the gate of SwiGLU, silu(x) * y, with both gradients computed in one pass."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.overrides import handle_torch_function, has_torch_function_variadic

from cuda_ext_example._opwright import elementwise
from cuda_ext_example._opwright.registration import (
    Entry,
    Rules,
    is_plain,
    promote,
    refuse_other_layouts,
)


def silu_mul(x: Tensor, y: Tensor) -> Tensor:
    """Multiplies silu(x) = x / (1 + exp(-x)) by y, and rounds once.

    Both need the same floating dtype and device; shapes broadcast as torch.mul's do. Differentiable.

    >>> import torch
    >>> silu_mul(torch.tensor([0.0, 2.0]), torch.tensor([1.0, 10.0]))
    tensor([ 0.0000, 17.6159])
    """
    if is_plain(x, y):
        return _fast_silu_mul(x, y)
    refuse_other_layouts("silu_mul", (x, y))
    if has_torch_function_variadic(x, y):
        return handle_torch_function(silu_mul, (x, y), x, y)
    for name, argument in (("x", x), ("y", y)):
        if not isinstance(argument, Tensor):
            raise TypeError(f"silu_mul: {name} must be a tensor, not {type(argument).__name__}")
    return _silu_mul(x, y)


def _reference(x: Tensor, y: Tensor) -> Tensor:
    if x.dtype != y.dtype or not x.is_floating_point():
        raise RuntimeError(
            f"silu_mul: x is {x.dtype} and y is {y.dtype}; they need one floating dtype: convert with .to()"
        )
    wide = torch.promote_types(x.dtype, torch.float32)
    return (torch.nn.functional.silu(x.to(wide)) * y.to(wide)).to(x.dtype)


def _reference_backward(grad: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    wide = torch.promote_types(x.dtype, torch.float32)
    g, u, v = grad.to(wide), x.to(wide), y.to(wide)
    s = torch.sigmoid(u)
    return (g * (s * (1 + u * (1 - s))) * v).to(x.dtype), (g * (u * s)).to(x.dtype)


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    elementwise.save_shapes(ctx, inputs, output)
    ctx.save_for_backward(*inputs)


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    return elementwise.gradients(ctx, *_silu_mul_backward(grad, *ctx.saved_tensors))


def _shard_backward(*args: Any) -> Iterator[tuple[list[Any], list[Any]]]:
    for outputs, inputs in elementwise.shard(*args):
        yield outputs * 2, inputs


_silu_mul_backward = Entry(
    "_silu_mul_backward", Rules(_reference_backward, elementwise.batch, shard=_shard_backward)
)
_silu_mul = Entry(
    "silu_mul",
    Rules(
        *(_reference, elementwise.batch, _save, _backward),
        autocast=promote,
        shard=elementwise.shard,
        decompose=_reference,
    ),
    twin="_silu_mul",
)
_fast_silu_mul = _silu_mul.fast

"""rms_norm: each row divided by the root of its mean square, and multiplied by a weight.

With r = 1 / sqrt(mean(x^2) + eps), one a row, and h = x * r:
  out      = h * weight
  dx       = r * (g * weight - h * mean(g * weight * h))
  dweight  = sum of g * h over the rows
  dr/dx    = -r^3 * x / n            (r is an output too: second derivatives pass through it)
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import increment_version
from torch.compiler import is_dynamo_compiling
from torch.overrides import handle_torch_function, has_torch_function

from cuda_ext_example._opwright.registration import (
    Entry,
    Rules,
    fast,
    has_tangent,
    is_differentiated,
    is_plain,
    library,
    overload,
    refuse_other_layouts,
    requires_grad,
)


def rms_norm(
    x: Tensor, weight: Tensor | None = None, eps: float | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Divides each row of the last dimension by the root of its mean square.

    `weight`, one element a column, multiplies the result; `eps` is added to the mean square, and is
    by default what torch.nn.functional.rms_norm takes. Sums are made in float32, of float64 in
    float64. With `out` the result is written there, which autograd cannot follow. Differentiable in
    `x` and `weight`.

    >>> import torch
    >>> rms_norm(torch.tensor([[3.0, 4.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]]))
    tensor([[1.2000, 1.6000, 0.0000, 0.0000],
            [0.0000, 2.0000, 0.0000, 0.0000]])
    """
    if out is None and is_plain(x, x if weight is None else weight):
        return _fast_rms_norm(x, weight, eps)
    tensors = tuple(arg for arg in (x, weight, out) if arg is not None)
    refuse_other_layouts("rms_norm", tensors)
    if has_torch_function(tensors):
        return handle_torch_function(rms_norm, tensors, x, weight, eps, out=out)
    for name, argument in (("x", x), ("weight", weight), ("out", out)):
        if not isinstance(argument, Tensor) and (name == "x" or argument is not None):
            kind = type(argument).__name__
            raise TypeError(f"rms_norm: {name} must be a tensor, not {kind}")
    if out is not None:
        return _rms_norm_into(out, x, weight, eps)
    if is_differentiated(x, weight):
        return _forward.differentiated(x, weight, eps)[0]
    return _rms_norm(x, weight, eps)


# --- The same in torch's own ops ------------------------------------------------------------------


def _reference_forward(
    x: Tensor, weight: Tensor | None = None, eps: float | None = None
) -> tuple[Tensor, Tensor]:
    _check(x, weight)
    wide = _wide(x)
    added = torch.finfo(wide.dtype).eps if eps is None else eps
    # torch.export of torch 2.15 loses the tangents of square().
    r = torch.rsqrt((wide * wide).mean(-1, keepdim=True) + added)
    out = wide * r if weight is None else wide * r * weight
    return out.to(x.dtype).contiguous(), r


def _reference_backward(
    grad: Tensor,
    x: Tensor,
    weight: Tensor | None,
    r: Tensor,
    needs_x: bool,
    needs_weight: bool,
) -> tuple[Tensor, Tensor]:
    g, h = _wide(grad), _wide(x) * r
    dx, dweight = x.new_empty(0), x.new_empty(0)
    if needs_x:
        gw = g if weight is None else g * weight
        dx = (r * (gw - h * (gw * h).mean(-1, keepdim=True))).to(x.dtype).contiguous()
    if needs_weight and weight is not None:
        dweight = (g * h).sum_to_size(x.shape[-1:]).to(weight.dtype)
    return dx, dweight


def _reference(x: Tensor, weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    return overload("_rms_norm_forward")(x, weight, eps)[0]


def _wide(tensor: Tensor) -> Tensor:
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))


def _check(
    x: Tensor, weight: Tensor | None, x_dim: int | None = None, weight_dim: int | None = None
) -> None:
    """Checks each example of a batch, which lies along the given dimensions."""
    row = _shape(x, x_dim)[-1:]
    if not row or not x.is_floating_point():
        raise RuntimeError("rms_norm: x must be a floating tensor with at least one dimension")
    if weight is None:
        return
    if _shape(weight, weight_dim) != row or not weight.is_floating_point():
        raise RuntimeError(
            f"rms_norm: weight must be a floating tensor of shape {row} like x's rows, not "
            f"{weight.dtype} of shape {_shape(weight, weight_dim)}"
        )


def _shape(tensor: Tensor, batch_dim: int | None) -> list[int]:
    shape = list(tensor.shape)
    if batch_dim is not None:
        del shape[batch_dim]
    return shape


# --- Gradients ------------------------------------------------------------------------------------


def _save(ctx: Any, inputs: tuple[Any, ...], outputs: tuple[Tensor, Tensor]) -> None:
    x, weight, _ = inputs
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(x, weight, outputs[1])


def _gradients(
    ctx: Any, grad: Tensor | None, grad_r: Tensor | None
) -> tuple[Tensor | None, Tensor | None]:
    x, weight, r = ctx.saved_tensors
    needs_x, needs_weight, *_ = ctx.needs_input_grad
    dx = dweight = None
    if grad is not None:
        backward = overload("_rms_norm_backward")
        dx, dweight = backward(grad, x, weight, r, needs_x, needs_weight)
    if grad_r is not None and needs_x:
        through_r = (grad_r * (-(r**3) / x.shape[-1]) * x).to(x.dtype)
        dx = through_r if dx is None else dx + through_r
    return dx if needs_x else None, dweight if needs_weight else None


# --- Batches: more rows, but a weight of their own, or a gradient of it, for each -----------------


def _batch_forward(
    forward: Any,
    in_dims: tuple[int | None, ...],
    x: Tensor,
    weight: Tensor | None = None,
    eps: float | None = None,
) -> tuple[tuple[Tensor, Tensor], tuple[int | None, int | None]]:
    x_dim, weight_dim = (*in_dims, None)[:2]
    _check(x, weight, x_dim, weight_dim)
    if x_dim is not None:
        x = x.movedim(x_dim, 0)
    if weight_dim is None or weight is None:
        return forward(x, weight, eps), (0, 0)
    out, r = forward(_wide(x), None, eps)
    return ((out * _rows_of_batch(weight, weight_dim, x, x_dim)).to(x.dtype), r), (
        0,
        None if x_dim is None else 0,
    )


def _rows_of_batch(weight: Tensor, weight_dim: int, x: Tensor, x_dim: int | None) -> Tensor:
    """A weight for each of the batch, shaped to multiply rows."""
    weight = weight.movedim(weight_dim, 0)
    rows = x.dim() - 1 - (x_dim is not None)
    return weight.reshape(weight.shape[0], *[1] * rows, weight.shape[1])


def _batch_rms_norm(_: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[Tensor, int]:
    (out, _), _ = _batch_forward(overload("_rms_norm_forward"), in_dims, *args)
    return out, 0


def _batch_backward(
    op: Any,
    in_dims: tuple[int | None, ...],
    grad: Tensor,
    x: Tensor,
    weight: Tensor | None,
    r: Tensor,
    needs_x: bool,
    needs_weight: bool,
) -> tuple[tuple[Tensor, Tensor], tuple[int | None, int | None]]:
    dims = dict(zip(("grad", "x", "weight", "r"), in_dims, strict=False))
    _check(x, weight, dims["x"], dims["weight"])
    size = next(
        tensor.shape[dim]
        for tensor, dim in zip((grad, x, weight, r), in_dims, strict=False)
        if dim is not None and tensor is not None
    )

    def batch_first(tensor: Tensor, dim: int | None) -> Tensor:
        return tensor.expand(size, *tensor.shape) if dim is None else tensor.movedim(dim, 0)

    grad = batch_first(grad, dims["grad"])
    x, r = batch_first(x, dims["x"]), batch_first(r, dims["r"]).contiguous()
    dx, dweight = x.new_empty(0), x.new_empty(0)
    needs_weight = needs_weight and weight is not None
    if needs_weight:
        every_row = _wide(grad) * _wide(x) * r
        dweight = every_row.flatten(1, -2).sum(1) if x.dim() > 2 else every_row
        dweight = dweight.to(x.dtype if weight is None else weight.dtype)
    if needs_x:
        if weight is not None and dims["weight"] is not None:
            grad = _wide(grad) * _rows_of_batch(weight, dims["weight"], x, 0)
            dx = op(grad, _wide(x), None, r, True, False)[0].to(x.dtype)
        else:
            dx = op(grad, x, weight, r, True, False)[0]
    return (dx, dweight), (0 if needs_x else None, 0 if needs_weight else None)


# --- Autocast: on CUDA, torch's own computes in float32 from torch 2.12 on; else it returns x's dtype

_IN_FLOAT32 = tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 12)


def _autocast(op: Any, x: Tensor, weight: Tensor | None = None, eps: Any = None) -> Tensor:
    if _IN_FLOAT32 and x.is_cuda:
        x = x.to(torch.promote_types(x.dtype, torch.float32))
    norm: Tensor = op(x, weight, eps)
    return norm


# --- DTensor: rows are split, and each part has its own sum of the weight's gradient --------------


def _shard(x: Any, weight: Any = None, *_: Any) -> Iterator[tuple[list[Any], list[Any]]]:
    for along in (None, *range(len(x.shape) - 1)):
        yield [along], [along] if weight is None else [along, None]


def _shard_forward(*args: Any) -> Iterator[tuple[list[Any], list[Any]]]:
    for (along,), inputs in _shard(*args):
        yield [along, along], inputs


def _shard_backward(
    _: Any, x: Any, weight: Any, __: Any, needs_x: bool, needs_weight: bool
) -> Iterator[tuple[list[Any], list[Any]]]:
    for along in (None, *range(len(x.shape) - 1)):
        dweight = "sum" if along is not None and needs_weight and weight is not None else None
        yield (
            [along if needs_x else None, dweight],
            [along, along, along] if weight is None else [along, along, None, along],
        )


_backward = Entry(
    "_rms_norm_backward", Rules(_reference_backward, _batch_backward, shard=_shard_backward)
)
_forward = Entry(
    "_rms_norm_forward",
    Rules(_reference_forward, _batch_forward, _save, _gradients, shard=_shard_forward),
)
_rms_norm = Entry(
    "rms_norm",
    Rules(_reference, _batch_rms_norm, autocast=_autocast, shard=_shard),
    twin="_rms_norm",
)
_fast_rms_norm = _rms_norm.fast


# --- rms_norm_out: an op that writes into one of its arguments ------------------------------------


def _rms_norm_into(out: Tensor, x: Tensor, weight: Tensor | None, eps: float | None) -> Tensor:
    watched = not (fast or is_dynamo_compiling())  # either sees to it that autograd knows
    if watched:
        _refuse_gradients(x, weight, out)
    _rms_norm_out(x, weight, eps, out=out)
    if watched and not out.is_inference():
        increment_version(out)
    return out


def _refuse_gradients(*tensors: Any) -> None:
    if requires_grad(*tensors) or has_tangent(*tensors):
        raise RuntimeError(
            "rms_norm: autograd cannot follow out=, and an argument requires a gradient; leave out "
            "out=, or call .detach() first"
        )


def _check_out(
    x: Tensor,
    weight: Tensor | None = None,
    eps: float | None = None,  # noqa: ARG001  (torch gives the signature)
    *,
    out: Tensor,
) -> None:
    _check(x, weight)
    if out.shape != x.shape or out.dtype != x.dtype:
        raise RuntimeError(
            f"rms_norm: out must be {x.dtype} of shape {list(x.shape)} like x, not {out.dtype} of "
            f"shape {list(out.shape)}"
        )


_rms_norm_out = overload("rms_norm_out")
library.impl("rms_norm_out", _check_out, "Meta")
if fast:
    fast.register_mutation(library, "rms_norm_out", _rms_norm_out, _refuse_gradients)

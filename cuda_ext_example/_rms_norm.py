"""rms_norm: each row divided by the root of its mean square, and multiplied by a weight; add_rms_norm: the same of
a sum, which it returns too.

With r = 1 / sqrt(mean(x^2) + eps), one a row, and h = x * r, where `weight` has its offset:
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
    x: Tensor,
    weight: Tensor | None = None,
    eps: float | None = None,
    weight_offset: float = 0.0,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Divides each row of the last dimension by the root of its mean square.

    `weight`, one element a column, multiplies the result; `weight_offset` is added to it first, in float32:
    1 for Gemma's norm. `eps` is added to the mean square, and is by default what
    torch.nn.functional.rms_norm takes. Sums are made in float32, of float64 in float64. With `out`
    the result is written there, which autograd cannot follow. Differentiable in `x` and `weight`.

    >>> import torch
    >>> rms_norm(torch.tensor([[3.0, 4.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]]))
    tensor([[1.2000, 1.6000, 0.0000, 0.0000],
            [0.0000, 2.0000, 0.0000, 0.0000]])
    """
    if out is None and is_plain(x, x if weight is None else weight):
        return _fast_rms_norm(x, weight, eps, weight_offset)
    tensors = tuple(arg for arg in (x, weight, out) if arg is not None)
    refuse_other_layouts("rms_norm", tensors)
    if has_torch_function(tensors):
        return handle_torch_function(rms_norm, tensors, x, weight, eps, weight_offset, out=out)
    _check_kinds("rms_norm", x=x, **_given(weight=weight, out=out))
    if out is not None:
        return _rms_norm_into(out, x, weight, eps, weight_offset)
    if is_differentiated(x, weight):
        return _forward.differentiated(x, weight, eps, weight_offset)[0]
    return _rms_norm(x, weight, eps, weight_offset)


def add_rms_norm(
    x: Tensor,
    residual: Tensor,
    weight: Tensor | None = None,
    eps: float | None = None,
    weight_offset: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """Returns rms_norm(x + residual, ...) and the sum x + residual, on CUDA mostly in one pass.

    `x` and `residual` need one shape, dtype and device. Differentiable in both and in `weight`.

    >>> import torch
    >>> add_rms_norm(torch.tensor([1.0, 2.0]), torch.tensor([2.0, 2.0]), eps=0.0)
    (tensor([0.8485, 1.1314]), tensor([3., 4.]))
    """
    if is_plain(x, residual) and (weight is None or is_plain(weight, x)):
        return _fast_add_rms_norm(x, residual, weight, eps, weight_offset)  # type: ignore[no-any-return]
    tensors = tuple(arg for arg in (x, residual, weight) if arg is not None)
    refuse_other_layouts("add_rms_norm", tensors)
    if has_torch_function(tensors):
        return handle_torch_function(  # type: ignore[no-any-return]
            add_rms_norm, tensors, x, residual, weight, eps, weight_offset
        )
    _check_kinds("add_rms_norm", x=x, residual=residual, **_given(weight=weight))
    if is_differentiated(x, residual, weight):
        out, added, _ = _add_forward.differentiated(x, residual, weight, eps, weight_offset)
        return out, added
    return _add_rms_norm(x, residual, weight, eps, weight_offset)  # type: ignore[no-any-return]


def _given(**arguments: Any) -> dict[str, Any]:
    return {name: argument for name, argument in arguments.items() if argument is not None}


def _check_kinds(function: str, **tensors: Any) -> None:
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{function}: {name} must be a tensor, not {type(tensor).__name__}")


# --- The same in torch's own ops ------------------------------------------------------------------


def _reference_forward(
    x: Tensor,
    weight: Tensor | None = None,
    eps: float | None = None,
    weight_offset: float = 0.0,
) -> tuple[Tensor, Tensor]:
    _check(x, weight)
    wide = _wide(x)
    added = torch.finfo(wide.dtype).eps if eps is None else eps
    # torch.export of torch 2.15 loses the tangents of square().
    r = torch.rsqrt((wide * wide).mean(-1, keepdim=True) + added)
    out = wide * r if weight is None else wide * r * _offset(weight, weight_offset)
    return out.to(x.dtype).contiguous(), r


def _reference_backward(
    grad: Tensor,
    x: Tensor,
    weight: Tensor | None,
    r: Tensor,
    needs_x: bool,
    needs_weight: bool,
    weight_offset: float = 0.0,
    added: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    g, h = _wide(grad), _wide(x) * r
    dx, dweight = x.new_empty(0), x.new_empty(0)
    if needs_x:
        gw = g if weight is None else g * _offset(weight, weight_offset)
        dx = (r * (gw - h * (gw * h).mean(-1, keepdim=True))).to(x.dtype).contiguous()
        dx = dx if added is None else (dx + added).contiguous()
    if needs_weight and weight is not None:
        dweight = (g * h).sum_to_size(x.shape[-1:]).to(weight.dtype)
    return dx, dweight


def _reference(x: Tensor, *args: Any) -> Tensor:
    return overload("_rms_norm_forward")(x, *_norm(*args))[0]


def _reference_add_forward(
    x: Tensor, residual: Tensor, *args: Any
) -> tuple[Tensor, Tensor, Tensor]:
    _check_residual(x, residual)
    added = (x + residual).contiguous()
    out, r = _reference_forward(added, *args)
    return out, added, r


def _reference_add(x: Tensor, residual: Tensor, *args: Any) -> tuple[Tensor, Tensor]:
    out, added, _ = overload("_add_rms_norm_forward")(x, residual, *_norm(*args))
    return out, added


def _decompose(x: Tensor, *args: Any) -> Any:
    """Forward, what torch.compile makes of it is as fast as the kernel; with a gradient, the kernels are faster."""
    return NotImplemented if requires_grad(x, *args) else _reference_forward(x, *_norm(*args))[0]


def _decompose_add(*args: Any) -> Any:
    return NotImplemented if requires_grad(*args) else _reference_add_forward(*args)[:2]


def _norm(
    weight: Tensor | None = None, eps: float | None = None, weight_offset: float = 0.0
) -> tuple[Any, ...]:
    """The arguments behind the inputs: torch leaves out those that have their defaults."""
    return weight, eps, weight_offset


def _offset(weight: Tensor, offset: float) -> Tensor:
    return weight if offset == 0.0 else _wide(weight) + offset


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


def _check_residual(
    x: Tensor, residual: Tensor, x_dim: int | None = None, residual_dim: int | None = None
) -> None:
    shape = _shape(x, x_dim)
    if _shape(residual, residual_dim) != shape or residual.dtype != x.dtype:
        raise RuntimeError(
            f"add_rms_norm: residual must be {x.dtype} of shape {shape} like x, not {residual.dtype} of "
            f"shape {_shape(residual, residual_dim)}; convert it with .to(), or expand it"
        )


def _shape(tensor: Tensor, batch_dim: int | None) -> list[int]:
    shape = list(tensor.shape)
    if batch_dim is not None:
        del shape[batch_dim]
    return shape


# --- Gradients ------------------------------------------------------------------------------------


def _save(ctx: Any, inputs: tuple[Any, ...], outputs: tuple[Tensor, Tensor]) -> None:
    _save_norm(ctx, inputs[0], inputs[1:], outputs[1])


def _save_add(ctx: Any, inputs: tuple[Any, ...], outputs: tuple[Tensor, Tensor, Tensor]) -> None:
    _save_norm(ctx, outputs[1], inputs[2:], outputs[2])


def _save_norm(ctx: Any, x: Tensor, norm: tuple[Any, ...], r: Tensor) -> None:
    weight, _, ctx.weight_offset = _norm(*norm)
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(x, weight, r)


def _gradients(ctx: Any, grad: Tensor | None, grad_r: Tensor | None) -> tuple[Any, ...]:
    needs_x, needs_weight, *_ = ctx.needs_input_grad
    return _gradients_of_norm(ctx, grad, None, grad_r, needs_x, needs_weight)


def _gradients_of_add(
    ctx: Any, grad: Tensor | None, grad_sum: Tensor | None, grad_r: Tensor | None
) -> tuple[Any, ...]:
    needs_x, needs_residual, needs_weight, *_ = ctx.needs_input_grad
    needs = needs_x or needs_residual
    dsum, dweight = _gradients_of_norm(ctx, grad, grad_sum, grad_r, needs, needs_weight)
    return dsum if needs_x else None, dsum if needs_residual else None, dweight


def _gradients_of_norm(
    ctx: Any,
    grad: Tensor | None,
    added: Tensor | None,
    grad_r: Tensor | None,
    needs_x: bool,
    needs_weight: bool,
) -> tuple[Tensor | None, Tensor | None]:
    """Those of x and of the weight; `added` is a gradient that x has beside."""
    x, weight, r = ctx.saved_tensors
    dx, dweight = added, None
    if grad is not None:
        backward = overload("_rms_norm_backward")
        more = () if added is None and not ctx.weight_offset else (ctx.weight_offset, added)
        dx, dweight = backward(grad, x, weight, r, needs_x, needs_weight, *more)
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
    weight_offset: float = 0.0,
) -> tuple[tuple[Tensor, Tensor], tuple[int | None, int | None]]:
    x_dim, weight_dim = (*in_dims, None)[:2]
    _check(x, weight, x_dim, weight_dim)
    if x_dim is not None:
        x = x.movedim(x_dim, 0)
    if weight_dim is None or weight is None:
        return forward(x, weight, eps, weight_offset), (0, 0)
    out, r = forward(_wide(x), None, eps)
    factors = _offset(_rows_of_batch(weight, weight_dim, x, x_dim), weight_offset)
    return ((out * factors).to(x.dtype), r), (
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


def _batch_add_forward(
    op: Any, in_dims: tuple[int | None, ...], x: Tensor, residual: Tensor, *args: Any
) -> tuple[tuple[Tensor, ...], tuple[int | None, ...]]:
    x_dim, residual_dim, *dims = in_dims
    _check_residual(x, residual, x_dim, residual_dim)
    _check(x, args[0] if args else None, x_dim, dims[0] if dims else None)
    if x_dim is None and residual_dim is None:  # of the weight alone
        added = x + residual
        (out, r), (out_dim, r_dim) = _batch_forward(
            overload("_rms_norm_forward"), (None, *dims), added, *args
        )
        return (out, added, r), (out_dim, None, r_dim)
    size = x.shape[x_dim] if x_dim is not None else residual.shape[residual_dim]
    pair = [
        tensor.expand(size, *tensor.shape) if dim is None else tensor.movedim(dim, 0)
        for tensor, dim in ((x, x_dim), (residual, residual_dim))
    ]
    if not dims or dims[0] is None:
        return op(*pair, *_norm(*args)), (0, 0, 0)
    added = pair[0] + pair[1]
    (out, r), _ = _batch_forward(overload("_rms_norm_forward"), (0, *dims), added, *args)
    return (out, added, r), (0, 0, 0)


def _batch_add(
    _: Any, in_dims: tuple[int | None, ...], *args: Any
) -> tuple[tuple[Tensor, ...], tuple[int | None, ...]]:
    results, dims = _batch_add_forward(overload("_add_rms_norm_forward"), in_dims, *args)
    return results[:2], dims[:2]


def _batch_backward(
    op: Any,
    in_dims: tuple[int | None, ...],
    grad: Tensor,
    x: Tensor,
    weight: Tensor | None,
    r: Tensor,
    needs_x: bool,
    needs_weight: bool,
    weight_offset: float = 0.0,
    added: Tensor | None = None,
) -> tuple[tuple[Tensor, Tensor], tuple[int | None, int | None]]:
    tensors = {"grad": grad, "x": x, "weight": weight, "r": r, "added": added}
    dims = dict(zip(tensors, (*in_dims[:4], in_dims[7] if len(in_dims) > 7 else None), strict=True))
    _check(x, weight, dims["x"], dims["weight"])
    size = next(
        tensor.shape[dims[name]]
        for name, tensor in tensors.items()
        if dims[name] is not None and tensor is not None
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
            factors = _offset(_rows_of_batch(weight, dims["weight"], x, 0), weight_offset)
            dx = op(_wide(grad) * factors, _wide(x), None, r, True, False)[0].to(x.dtype)
        else:
            dx = op(grad, x, weight, r, True, False, weight_offset)[0]
        if added is not None:
            dx = dx + batch_first(added, dims["added"])
    return (dx, dweight), (0 if needs_x else None, 0 if needs_weight else None)


# --- Autocast: on CUDA, torch's own computes in float32 from torch 2.12 on; else it returns x's dtype

_IN_FLOAT32 = tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 12)


def _autocast(op: Any, x: Tensor, *args: Any) -> Any:
    return op(_wide(x) if _IN_FLOAT32 and x.is_cuda else x, *args)


def _autocast_add(op: Any, x: Tensor, residual: Tensor, *args: Any) -> Any:
    """As rms_norm of x + residual, which torch promotes."""
    dtype = torch.promote_types(x.dtype, residual.dtype)
    out, added = op(x.to(dtype), residual.to(dtype), *args)
    return _wide(out) if _IN_FLOAT32 and x.is_cuda else out, added


# --- DTensor: rows are split, and each part has its own sum of the weight's gradient --------------


def _shard(x: Any, weight: Any = None, *_: Any) -> Iterator[tuple[list[Any], list[Any]]]:
    for along in (None, *range(len(x.shape) - 1)):
        yield [along], [along] if weight is None else [along, None]


def _shard_forward(*args: Any) -> Iterator[tuple[list[Any], list[Any]]]:
    for (along,), inputs in _shard(*args):
        yield [along, along], inputs


def _shard_add(x: Any, _: Any, *args: Any) -> Iterator[tuple[list[Any], list[Any]]]:
    for (along,), inputs in _shard(x, *args):
        yield [along, along], [along, *inputs]


def _shard_add_forward(*args: Any) -> Iterator[tuple[list[Any], list[Any]]]:
    for outputs, inputs in _shard_add(*args):
        yield [*outputs, outputs[0]], inputs


def _shard_backward(
    _: Any,
    x: Any,
    weight: Any,
    __: Any,
    needs_x: bool,
    needs_weight: bool,
    ___: float = 0.0,
    added: Any = None,
) -> Iterator[tuple[list[Any], list[Any]]]:
    for along in (None, *range(len(x.shape) - 1)):
        dweight = "sum" if along is not None and needs_weight and weight is not None else None
        inputs = [along, along, along] if weight is None else [along, along, None, along]
        yield [along if needs_x else None, dweight], inputs + [along] * (added is not None)


_backward = Entry(
    "_rms_norm_backward", Rules(_reference_backward, _batch_backward, shard=_shard_backward)
)
_forward = Entry(
    "_rms_norm_forward",
    Rules(_reference_forward, _batch_forward, _save, _gradients, shard=_shard_forward),
)
_rms_norm = Entry(
    "rms_norm",
    Rules(_reference, _batch_rms_norm, autocast=_autocast, shard=_shard, decompose=_decompose),
    twin="_rms_norm",
)
_add_forward = Entry(
    "_add_rms_norm_forward",
    Rules(
        *(_reference_add_forward, _batch_add_forward, _save_add, _gradients_of_add),
        shard=_shard_add_forward,
    ),
)
_add_rms_norm = Entry(
    "add_rms_norm",
    Rules(
        *(_reference_add, _batch_add),
        autocast=_autocast_add,
        shard=_shard_add,
        decompose=_decompose_add,
    ),
    twin="_add_rms_norm",
)
_fast_rms_norm, _fast_add_rms_norm = _rms_norm.fast, _add_rms_norm.fast


# --- rms_norm_out: an op that writes into one of its arguments ------------------------------------


def _rms_norm_into(out: Tensor, x: Tensor, weight: Tensor | None, *args: Any) -> Tensor:
    watched = not (fast or is_dynamo_compiling())  # either sees to it that autograd knows
    if watched:
        _refuse_gradients(x, weight, out)
    _rms_norm_out(x, weight, *args, out=out)
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
    *_: float | None,
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

"""Norms over rows: registers with torch the ops that the library makes from one OPWRIGHT_ROWS(NAME).

NAME norms the rows of `x`, which lie along its last dimension, and multiplies each by `weight`, which has one
element per column. add_NAME norms a sum and returns the sum too; NAME_out serves `out=`. _NAME_forward and
_add_NAME_forward also return the states of the rows, which _NAME_backward takes.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import increment_version
from torch.compiler import is_dynamo_compiling
from torch.overrides import handle_torch_function, has_torch_function

from .registration import (
    Entry,
    Rules,
    fast,
    has_tangent,
    is_differentiated,
    library,
    missing,
    overload,
    refuse_other_layouts,
    requires_grad,
)

Split = Iterator[tuple[list[Any], list[Any]]]


class Norm:
    """A norm, `apply(x, state) * weight`, where `state` is one number per row.

    A subclass defines it in torch's own ops, for tensors in float32 or float64. `gradient` takes the gradient of
    `apply(x, state(x))` to that of x, through the state too. `state_gradient` takes the gradient of `state` to
    that of x; it is needed for second derivatives, because the state is also a result.
    """

    in_float32 = False  #: whether autocast computes in float32 on CUDA

    @staticmethod
    def state(x: Tensor, number: float | None) -> Tensor:
        raise NotImplementedError

    @staticmethod
    def apply(x: Tensor, state: Tensor) -> Tensor:
        raise NotImplementedError

    @staticmethod
    def gradient(grad: Tensor, x: Tensor, state: Tensor) -> Tensor:
        raise NotImplementedError

    @staticmethod
    def state_gradient(grad: Tensor, x: Tensor, state: Tensor) -> Tensor:
        raise NotImplementedError

    def __init__(self, name: str) -> None:
        self.name = name
        rules = Rules(self._reference_backward, self._batch_backward, shard=_shard_backward)
        self._backward_op = Entry(f"_{name}_backward", rules).op
        self._forward = Entry(
            f"_{name}_forward",
            Rules(
                *(self._reference_forward, self._batch_forward, _save, self._gradients),
                shard=_shard_forward,
            ),
        )
        self._forward_op = self._forward.op
        self.entry = Entry(
            name,
            Rules(
                *(self._reference, self._batch),
                autocast=self._autocast,
                shard=_shard,
                decompose=self._decompose,
            ),
            twin=f"_{name}",
        )
        self._add_forward = Entry(
            f"_add_{name}_forward",
            Rules(
                *(self._reference_add_forward, self._batch_add_forward),
                *(_save_add, self._gradients_of_add),
                shard=_shard_add_forward,
            ),
        )
        self._add_forward_op = self._add_forward.op
        self.add_entry = Entry(
            f"add_{name}",
            Rules(
                *(self._reference_add, self._batch_add),
                autocast=self._autocast_add,
                shard=_shard_add,
                decompose=self._decompose_add,
            ),
            twin=f"_add_{name}",
        )
        #: The kernels without Python around them, for calls whose tensors all pass `is_plain`.
        self.fast, self.fast_add = self.entry.fast, self.add_entry.fast
        self._out_op = overload(f"{name}_out")
        if f"{name}_out" in missing:
            return
        library.impl(f"{name}_out", self._check_out, "Meta")
        if fast:
            fast.register_mutation(library, f"{name}_out", self._out_op, self._refuse_gradients)

    # --- What users call --------------------------------------------------------------------------

    def __call__(
        self,
        public: Callable[..., Any],
        x: Tensor,
        weight: Tensor | None,
        *args: Any,
        out: Tensor | None = None,
    ) -> Tensor:
        """Calls NAME for `public`, the function that users call."""
        tensors = tuple(arg for arg in (x, weight, out) if arg is not None)
        refuse_other_layouts(self.name, tensors)
        if has_torch_function(tensors):
            return handle_torch_function(public, tensors, x, weight, *args, out=out)
        _check_kinds(self.name, x=x, weight=weight, out=out)
        if out is not None:
            return self._into(out, x, weight, *args)
        if is_differentiated(x, weight):
            return self._forward.differentiated(x, weight, *args)[0]
        return self.entry(x, weight, *args)

    def add(
        self,
        public: Callable[..., Any],
        x: Tensor,
        residual: Tensor,
        weight: Tensor | None,
        *args: Any,
    ) -> tuple[Tensor, Tensor]:
        """Calls add_NAME for `public`."""
        tensors = tuple(arg for arg in (x, residual, weight) if arg is not None)
        refuse_other_layouts(f"add_{self.name}", tensors)
        if has_torch_function(tensors):
            return handle_torch_function(public, tensors, x, residual, weight, *args)  # type: ignore[no-any-return]
        _check_kinds(f"add_{self.name}", x=x, residual=residual, weight=weight)
        if is_differentiated(x, residual, weight):
            out, added, _ = self._add_forward.differentiated(x, residual, weight, *args)
            return out, added
        return self.add_entry(x, residual, weight, *args)  # type: ignore[no-any-return]

    # --- The same in torch's own ops --------------------------------------------------------------

    def _reference_forward(
        self,
        x: Tensor,
        weight: Tensor | None = None,
        number: float | None = None,
        weight_offset: float = 0.0,
    ) -> tuple[Tensor, Tensor]:
        self._check(x, weight)
        wide = _wide(x)
        state = self.state(wide, number)
        out = self.apply(wide, state)
        out = out if weight is None else out * _offset(weight, weight_offset)
        return out.to(x.dtype).contiguous(), state

    def _reference_backward(
        self,
        grad: Tensor,
        x: Tensor,
        weight: Tensor | None,
        state: Tensor,
        needs_x: bool,
        needs_weight: bool,
        weight_offset: float = 0.0,
        added: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        g, wide = _wide(grad), _wide(x)
        dx, dweight = x.new_empty(0), x.new_empty(0)
        if needs_x:
            gw = g if weight is None else g * _offset(weight, weight_offset)
            dx = self.gradient(gw, wide, state).to(x.dtype).contiguous()
            dx = dx if added is None else (dx + added).contiguous()
        if needs_weight and weight is not None:
            dweight = (g * self.apply(wide, state)).sum_to_size(x.shape[-1:]).to(weight.dtype)
        return dx, dweight

    def _reference(self, x: Tensor, *args: Any) -> Tensor:
        return self._forward_op(x, *_filled(*args))[0]

    def _reference_add_forward(
        self, x: Tensor, residual: Tensor, *args: Any
    ) -> tuple[Tensor, Tensor, Tensor]:
        self._check_residual(x, residual)
        added = (x + residual).contiguous()
        out, state = self._reference_forward(added, *args)
        return out, added, state

    def _reference_add(self, x: Tensor, residual: Tensor, *args: Any) -> tuple[Tensor, Tensor]:
        out, added, _ = self._add_forward_op(x, residual, *_filled(*args))
        return out, added

    def _decompose(self, x: Tensor, *args: Any) -> Any:
        """Lets torch.compile fuse the norm if no gradient is needed; with a gradient, the kernels are faster."""
        if requires_grad(x, *args):
            return NotImplemented
        return self._reference_forward(x, *_filled(*args))[0]

    def _decompose_add(self, *args: Any) -> Any:
        return NotImplemented if requires_grad(*args) else self._reference_add_forward(*args)[:2]

    def _check(
        self,
        x: Tensor,
        weight: Tensor | None,
        x_dim: int | None = None,
        weight_dim: int | None = None,
    ) -> None:
        """Checks the dtypes and shapes of one example of a batch; `x_dim` and `weight_dim` are the batch's."""
        row = _shape(x, x_dim)[-1:]
        if not row or not x.is_floating_point():
            raise RuntimeError(
                f"{self.name}: x must be a floating tensor with at least one dimension"
            )
        if weight is None:
            return
        if _shape(weight, weight_dim) != row or not weight.is_floating_point():
            raise RuntimeError(
                f"{self.name}: weight must be a floating tensor of shape {row} like x's rows, not "
                f"{weight.dtype} of shape {_shape(weight, weight_dim)}"
            )

    def _check_residual(
        self,
        x: Tensor,
        residual: Tensor,
        x_dim: int | None = None,
        residual_dim: int | None = None,
    ) -> None:
        shape = _shape(x, x_dim)
        if _shape(residual, residual_dim) != shape or residual.dtype != x.dtype:
            raise RuntimeError(
                f"add_{self.name}: residual must be {x.dtype} of shape {shape} like x, not {residual.dtype} of "
                f"shape {_shape(residual, residual_dim)}; convert it with .to(), or expand it"
            )

    # --- Gradients --------------------------------------------------------------------------------

    def _gradients(
        self, ctx: Any, grad: Tensor | None, grad_state: Tensor | None
    ) -> tuple[Any, ...]:
        needs_x, needs_weight, *_ = ctx.needs_input_grad
        return self._gradients_of_norm(ctx, grad, None, grad_state, needs_x, needs_weight)

    def _gradients_of_add(
        self,
        ctx: Any,
        grad: Tensor | None,
        grad_sum: Tensor | None,
        grad_state: Tensor | None,
    ) -> tuple[Any, ...]:
        needs_x, needs_residual, needs_weight, *_ = ctx.needs_input_grad
        needs = needs_x or needs_residual
        dsum, dweight = self._gradients_of_norm(
            ctx, grad, grad_sum, grad_state, needs, needs_weight
        )
        return dsum if needs_x else None, dsum if needs_residual else None, dweight

    def _gradients_of_norm(
        self,
        ctx: Any,
        grad: Tensor | None,
        added: Tensor | None,
        grad_state: Tensor | None,
        needs_x: bool,
        needs_weight: bool,
    ) -> tuple[Tensor | None, Tensor | None]:
        """Returns the gradients of x and of the weight; `added` is added to that of x."""
        dx, dweight = added, None
        if grad is None and grad_state is None:  # the saved sum may have been overwritten
            return dx if needs_x else None, None
        x, weight, state = ctx.saved_tensors
        if grad is not None:
            more = () if added is None and not ctx.weight_offset else (ctx.weight_offset, added)
            dx, dweight = self._backward_op(grad, x, weight, state, needs_x, needs_weight, *more)
        if grad_state is not None and needs_x:
            through_state = self.state_gradient(grad_state, _wide(x), state).to(x.dtype)
            dx = through_state if dx is None else dx + through_state
        return dx if needs_x else None, dweight if needs_weight else None

    # --- Batches: a batch adds rows, but a batched weight, or its gradient, needs more ------------

    def _batch_forward(
        self,
        forward: Any,
        in_dims: tuple[int | None, ...],
        x: Tensor,
        weight: Tensor | None = None,
        number: float | None = None,
        weight_offset: float = 0.0,
    ) -> tuple[tuple[Tensor, Tensor], tuple[int | None, int | None]]:
        x_dim, weight_dim = (*in_dims, None)[:2]
        self._check(x, weight, x_dim, weight_dim)
        if x_dim is not None:
            x = x.movedim(x_dim, 0)
        if weight_dim is None or weight is None:
            return forward(x, weight, number, weight_offset), (0, 0)
        out, state = forward(_wide(x), None, number)
        factors = _offset(_rows_of_batch(weight, weight_dim, x, x_dim), weight_offset)
        return ((out * factors).to(x.dtype), state), (0, None if x_dim is None else 0)

    def _batch(self, _: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[Tensor, int]:
        (out, _), _ = self._batch_forward(self._forward_op, in_dims, *args)
        return out, 0

    def _batch_add_forward(
        self,
        op: Any,
        in_dims: tuple[int | None, ...],
        x: Tensor,
        residual: Tensor,
        *args: Any,
    ) -> tuple[tuple[Tensor, ...], tuple[int | None, ...]]:
        x_dim, residual_dim, *dims = in_dims
        self._check_residual(x, residual, x_dim, residual_dim)
        self._check(x, args[0] if args else None, x_dim, dims[0] if dims else None)
        if x_dim is None and residual_dim is None:  # only the weight is batched
            added = x + residual
            (out, state), (out_dim, state_dim) = self._batch_forward(
                self._forward_op, (None, *dims), added, *args
            )
            return (out, added, state), (out_dim, None, state_dim)
        size = x.shape[x_dim] if x_dim is not None else residual.shape[residual_dim]
        pair = [_batch_first(x, x_dim, size), _batch_first(residual, residual_dim, size)]
        if not dims or dims[0] is None:
            return op(*pair, *_filled(*args)), (0, 0, 0)
        added = pair[0] + pair[1]
        (out, state), _ = self._batch_forward(self._forward_op, (0, *dims), added, *args)
        return (out, added, state), (0, 0, 0)

    def _batch_add(
        self, _: Any, in_dims: tuple[int | None, ...], *args: Any
    ) -> tuple[tuple[Tensor, ...], tuple[int | None, ...]]:
        results, dims = self._batch_add_forward(self._add_forward_op, in_dims, *args)
        return results[:2], dims[:2]

    def _batch_backward(
        self,
        op: Any,
        in_dims: tuple[int | None, ...],
        grad: Tensor,
        x: Tensor,
        weight: Tensor | None,
        state: Tensor,
        needs_x: bool,
        needs_weight: bool,
        weight_offset: float = 0.0,
        added: Tensor | None = None,
    ) -> tuple[tuple[Tensor, Tensor], tuple[int | None, int | None]]:
        grad_dim, x_dim, weight_dim, state_dim = in_dims[:4]
        added_dim = in_dims[7] if len(in_dims) > 7 else None
        self._check(x, weight, x_dim, weight_dim)
        tensors = ((grad, grad_dim), (x, x_dim), (weight, weight_dim), (state, state_dim))
        size = next(
            tensor.shape[dim]
            for tensor, dim in (*tensors, (added, added_dim))
            if dim is not None and tensor is not None
        )
        grad, x = _batch_first(grad, grad_dim, size), _batch_first(x, x_dim, size)
        state = _batch_first(state, state_dim, size).contiguous()
        dx, dweight = x.new_empty(0), x.new_empty(0)
        needs_weight = needs_weight and weight is not None
        if needs_weight:
            every_row = _wide(grad) * self.apply(_wide(x), state)
            dweight = every_row.flatten(1, -2).sum(1) if x.dim() > 2 else every_row
            dweight = dweight.to(x.dtype if weight is None else weight.dtype)
        if needs_x:
            if weight is not None and weight_dim is not None:
                factors = _offset(_rows_of_batch(weight, weight_dim, x, 0), weight_offset)
                dx = op(_wide(grad) * factors, _wide(x), None, state, True, False)[0].to(x.dtype)
            else:
                dx = op(grad, x, weight, state, True, False, weight_offset)[0]
            if added is not None:
                dx = dx + _batch_first(added, added_dim, size)
        return (dx, dweight), (0 if needs_x else None, 0 if needs_weight else None)

    # --- Autocast ---------------------------------------------------------------------------------

    def _autocast(self, op: Any, x: Tensor, *args: Any) -> Any:
        return op(_wide(x) if self.in_float32 and x.is_cuda else x, *args)

    def _autocast_add(self, op: Any, x: Tensor, residual: Tensor, *args: Any) -> Any:
        """Promotes x and residual to one dtype, as torch does for x + residual."""
        dtype = torch.promote_types(x.dtype, residual.dtype)
        out, added = op(x.to(dtype), residual.to(dtype), *args)
        return _wide(out) if self.in_float32 and x.is_cuda else out, added

    # --- NAME_out, which writes into one of its arguments -----------------------------------------

    def _into(self, out: Tensor, *args: Any) -> Tensor:
        watched = not (fast or is_dynamo_compiling())  # either of them informs autograd
        if watched:
            self._refuse_gradients(*args[:2], out)
        self._out_op(*args, out=out)
        if watched and not out.is_inference():
            increment_version(out)
        return out

    def _refuse_gradients(self, *tensors: Any, tangents: bool = True) -> None:
        if requires_grad(*tensors) or (tangents and has_tangent(*tensors)):
            raise RuntimeError(
                f"{self.name}: autograd cannot follow out=, and an argument requires a gradient; leave out "
                "out=, or call .detach() first"
            )

    def _check_out(
        self, x: Tensor, weight: Tensor | None = None, *_: float | None, out: Tensor
    ) -> None:
        self._check(x, weight)
        if out.shape != x.shape or out.dtype != x.dtype:
            raise RuntimeError(
                f"{self.name}: out must be {x.dtype} of shape {list(x.shape)} like x, not {out.dtype} of "
                f"shape {list(out.shape)}"
            )


def _check_kinds(function: str, **tensors: Any) -> None:
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor) and not (tensor is None and name in ("weight", "out")):
            raise TypeError(f"{function}: {name} must be a tensor, not {type(tensor).__name__}")


def _filled(
    weight: Tensor | None = None, number: float | None = None, weight_offset: float = 0.0
) -> tuple[Any, ...]:
    """Returns the arguments after the inputs, with the defaults that torch leaves out."""
    return weight, number, weight_offset


def _offset(weight: Tensor, offset: float) -> Tensor:
    return weight if offset == 0.0 else _wide(weight) + offset


def _wide(tensor: Tensor) -> Tensor:
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))


def _shape(tensor: Tensor, batch_dim: int | None) -> list[int]:
    shape = list(tensor.shape)
    if batch_dim is not None:
        del shape[batch_dim]
    return shape


def _save(ctx: Any, inputs: tuple[Any, ...], outputs: tuple[Tensor, Tensor]) -> None:
    _save_norm(ctx, inputs[0], inputs[1:], outputs[1])


def _save_add(ctx: Any, inputs: tuple[Any, ...], outputs: tuple[Tensor, Tensor, Tensor]) -> None:
    _save_norm(ctx, outputs[1], inputs[2:], outputs[2])


def _save_norm(ctx: Any, x: Tensor, args: tuple[Any, ...], state: Tensor) -> None:
    weight, _, ctx.weight_offset = _filled(*args)
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(x, weight, state)


def _batch_first(tensor: Tensor, dim: int | None, size: int) -> Tensor:
    return tensor.expand(size, *tensor.shape) if dim is None else tensor.movedim(dim, 0)


def _rows_of_batch(weight: Tensor, weight_dim: int, x: Tensor, x_dim: int | None) -> Tensor:
    """Returns one weight per example of the batch, shaped to multiply the rows."""
    weight = weight.movedim(weight_dim, 0)
    rows = x.dim() - 1 - (x_dim is not None)
    return weight.reshape(weight.shape[0], *[1] * rows, weight.shape[1])


# --- DTensor: rows may be split, and then the parts' gradients of the weight are summed -----------


def _shard(x: Any, weight: Any = None, *_: Any) -> Split:
    for along in (None, *range(len(x.shape) - 1)):
        yield [along], [along] if weight is None else [along, None]


def _shard_forward(*args: Any) -> Split:
    for (along,), inputs in _shard(*args):
        yield [along, along], inputs


def _shard_add(x: Any, _: Any, *args: Any) -> Split:
    for (along,), inputs in _shard(x, *args):
        yield [along, along], [along, *inputs]


def _shard_add_forward(*args: Any) -> Split:
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
) -> Split:
    for along in (None, *range(len(x.shape) - 1)):
        dweight = "sum" if along is not None and needs_weight and weight is not None else None
        inputs = [along, along, along] if weight is None else [along, along, None, along]
        yield [along if needs_x else None, dweight], inputs + [along] * (added is not None)

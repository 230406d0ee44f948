"""The ops' Python face: what users call, and what torch needs for autograd, compile and vmap.

`torch.ops.cuda_ext_example.*` are the kernels alone: autograd does not see them. A Python formula
registered on them would run on every call and double its cost, and even torch's stand-in for a
missing one costs a hundredth. So the functions here add autograd, and only where it is at work.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad as _forward_ad

from cuda_ext_example import _library  # noqa: F401  (loads the library)

_namespace = torch.ops.cuda_ext_example
_my_add = _namespace.my_add.default
_my_fast_add = _namespace.my_fast_add.default
_cust_add_int = _namespace.cust_add.int
_cust_add_float = _namespace.cust_add.float
_cust_add_complex = _namespace.cust_add.complex


def my_add(a: Tensor, b: Tensor) -> Tensor:
    """Adds two tensors, one element a GPU thread: the readable kernel.

    Both need one dtype and one device; shapes broadcast as torch.add's do. Differentiable.

    >>> import torch
    >>> my_add(torch.tensor([1.0, 2.0]), torch.tensor([10.0]))
    tensor([11., 12.])
    """
    if a.requires_grad or b.requires_grad or _forward_ad._current_level >= 0:
        return _differentiable_add(_my_add, a, b)
    return _my_add(a, b)


def my_fast_add(a: Tensor, b: Tensor) -> Tensor:
    """Adds two tensors at memory speed, with 128-bit loads and stores.

    Both need one dtype and one device; shapes broadcast as torch.add's do. Differentiable.

    >>> import torch
    >>> my_fast_add(torch.arange(3), torch.arange(3))
    tensor([0, 2, 4])
    """
    if a.requires_grad or b.requires_grad or _forward_ad._current_level >= 0:
        return _differentiable_add(_my_fast_add, a, b)
    return _my_fast_add(a, b)


def cust_add(x: Tensor, value: complex) -> Tensor:
    """Adds a Python number to every element and keeps the tensor's dtype. Differentiable in `x`.

    An int is added exactly, to the last of 64 bits. A float needs a floating tensor, a complex
    number a complex one.

    >>> import torch
    >>> cust_add(torch.tensor([2**53, 0]), 1)
    tensor([9007199254740993,                1])
    """
    if _forward_ad._current_level >= 0:
        return _DualCustAdd.apply(x, value)
    if x.requires_grad and torch.is_grad_enabled():
        return _CustAdd.apply(x, value)
    return _cust_add(x, value)


def _cust_add(x: Tensor, value: complex) -> Tensor:
    """The overload for the number's type."""
    if isinstance(value, float | torch.SymFloat):
        return _cust_add_float(x, value)
    if isinstance(value, bool):
        value = int(value)
    if isinstance(value, int | torch.SymInt):
        return _cust_add_int(x, value)
    if isinstance(value, complex):
        return _cust_add_complex(x, value.real, value.imag)
    raise TypeError(f"cust_add: value must be an int, float or complex, not {type(value).__name__}")


# --- Autograd: the gradient passes through, summed over what was broadcast ------------------------


def _differentiable_add(op: Any, a: Tensor, b: Tensor) -> Tensor:
    if _forward_ad._current_level >= 0:
        return _DualAdd.apply(op, a, b)
    if torch.is_grad_enabled():
        return _Add.apply(op, a, b)
    return op(a, b)


class _Add(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(op: Any, a: Tensor, b: Tensor) -> Tensor:
        return op(a, b)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, Tensor, Tensor], output: Tensor) -> None:
        _, a, b = inputs
        ctx.a_shape, ctx.b_shape = a.shape, b.shape

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor | None, Tensor | None]:
        _, needs_a, needs_b = ctx.needs_input_grad
        return (
            None,
            grad.sum_to_size(ctx.a_shape) if needs_a else None,
            grad.sum_to_size(ctx.b_shape) if needs_b else None,
        )


class _DualAdd(_Add):
    """With forward mode; apart, because torch.compile refuses a Function that has a jvp."""

    @staticmethod
    def jvp(ctx: Any, _: None, a_tangent: Tensor | None, b_tangent: Tensor | None) -> Tensor:
        if a_tangent is None or b_tangent is None:
            tangent: Any = b_tangent if a_tangent is None else a_tangent
            return tangent.expand(torch.broadcast_shapes(ctx.a_shape, ctx.b_shape)).clone()
        return a_tangent + b_tangent


class _CustAdd(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, value: complex) -> Tensor:
        return _cust_add(x, value)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, complex], output: Tensor) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return grad, None


class _DualCustAdd(_CustAdd):
    """With forward mode."""

    @staticmethod
    def jvp(ctx: Any, x_tangent: Tensor, _: None) -> Tensor:
        return x_tangent.clone()


# --- What torch.compile, torch.export and vmap need -----------------------------------------------


def _meta_add(a: Tensor, b: Tensor) -> Tensor:
    if a.dtype != b.dtype:
        raise RuntimeError(f"a is {a.dtype} and b is {b.dtype}; convert one of them with .to()")
    return torch.add(a, b)  # torch.add's shape and strides are ours


def _meta_cust_add(x: Tensor, *number: Any) -> Tensor:
    return torch.add(x, 1)


def _vmap_add(op: Any) -> Any:
    def rule(
        info: Any, in_dims: tuple[int | None, int | None], a: Tensor, b: Tensor
    ) -> tuple[Tensor, int]:
        rank = max(t.dim() - (d is not None) for t, d in zip((a, b), in_dims, strict=True))

        def batch_first(tensor: Tensor, dim: int | None) -> Tensor:
            if dim is None:
                return tensor
            moved = tensor.movedim(dim, 0)
            # Broadcasting aligns the last dimensions: fill up to the common rank behind the batch.
            return moved.reshape(moved.shape[0], *[1] * (rank - moved.dim() + 1), *moved.shape[1:])

        return op(batch_first(a, in_dims[0]), batch_first(b, in_dims[1])), 0

    return rule


def _vmap_cust_add(op: Any) -> Any:
    def rule(info: Any, in_dims: tuple[int, ...], x: Tensor, *number: Any) -> tuple[Tensor, int]:
        return op(x, *number), in_dims[0]

    return rule


def _register() -> torch.library.Library:
    # Meta kernels, which fake tensors use too: torch.library.register_fake looks up each caller's
    # source file and would make the import ten times as long.
    library = torch.library.Library("cuda_ext_example", "FRAGMENT")
    rules: dict[Any, tuple[Any, Any]] = {
        **dict.fromkeys((_my_add, _my_fast_add), (_meta_add, _vmap_add)),
        **dict.fromkeys(
            (_cust_add_int, _cust_add_float, _cust_add_complex), (_meta_cust_add, _vmap_cust_add)
        ),
    }
    for op, (meta, vmap) in rules.items():
        library.impl(op, meta, "Meta")
        library.impl(op, torch.library.fallthrough_kernel, "Autograd")
        torch.library.register_vmap(op, vmap(op), lib=library)
    # The stable ABI has no Scalar: the overload for any number is made of the three that are not.
    library.define("cust_add(Tensor x, Scalar value) -> Tensor")
    library.impl("cust_add", _cust_add, "CompositeImplicitAutograd")
    return library


_registrations = _register()

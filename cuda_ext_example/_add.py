"""my_add and my_fast_add: the sum of two tensors, by a readable kernel and by a fast one."""

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


def my_add(a: Tensor, b: Tensor) -> Tensor:
    """Adds two tensors with a readable kernel, which handles one element per GPU thread.

    Both need the same dtype and device; shapes broadcast as torch.add's do. Differentiable.

    >>> import torch
    >>> my_add(torch.tensor([1.0, 2.0]), torch.tensor([10.0]))
    tensor([11., 12.])
    """
    return _fast_my_add(a, b) if is_plain(a, b) else _call_add(my_add, _my_add, a, b)


def my_fast_add(a: Tensor, b: Tensor) -> Tensor:
    """Adds two tensors at memory speed, with 128-bit loads and stores.

    Both need the same dtype and device; shapes broadcast as torch.add's do. Differentiable.

    >>> import torch
    >>> my_fast_add(torch.arange(3), torch.arange(3))
    tensor([0, 2, 4])
    """
    return _fast_my_fast_add(a, b) if is_plain(a, b) else _call_add(my_fast_add, _my_fast_add, a, b)


def _call_add(function: Any, entry: Entry, a: Tensor, b: Tensor) -> Tensor:
    refuse_other_layouts(function.__name__, (a, b))
    if has_torch_function_variadic(a, b):
        return handle_torch_function(function, (a, b), a, b)
    for name, argument in (("a", a), ("b", b)):
        if not isinstance(argument, Tensor):
            raise TypeError(
                f"{function.__name__}: {name} must be a tensor, not {type(argument).__name__}; "
                "cust_add adds a number to a tensor"
            )
    return entry(a, b)


def _reference_add(a: Tensor, b: Tensor) -> Tensor:
    if a.dtype != b.dtype:
        raise RuntimeError(f"a is {a.dtype} and b is {b.dtype}; convert one of them with .to()")
    return torch.add(a, b)


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    return elementwise.gradients(ctx, grad, grad)


_ADD = Rules(
    *(_reference_add, elementwise.batch, elementwise.save_shapes, _backward),
    autocast=promote,
    shard=elementwise.shard,
    decompose=_reference_add,
)
_my_add, _my_fast_add = (Entry(name, _ADD, twin=f"_{name}") for name in ("my_add", "my_fast_add"))
_fast_my_add, _fast_my_fast_add = _my_add.fast, _my_fast_add.fast

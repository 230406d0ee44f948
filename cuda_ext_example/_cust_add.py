"""cust_add: the sum of a tensor and a number."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.compiler import is_dynamo_compiling
from torch.overrides import handle_torch_function, has_torch_function_variadic

from cuda_ext_example._add import my_fast_add
from cuda_ext_example._opwright import elementwise
from cuda_ext_example._opwright.registration import (
    Entry,
    Rules,
    has_tangent,
    is_plain,
    library,
    missing,
    nothing_watches,
    overload,
    refuse_other_layouts,
)


def cust_add(x: Tensor, value: complex | Tensor) -> Tensor:
    """Adds a number to every element and keeps the tensor's dtype. Differentiable in `x`.

    An int is added exactly, to all 64 bits. A float needs a floating or complex tensor, a complex
    number a complex one. A tensor without dimensions counts as a number, and is differentiable.

    >>> import torch
    >>> cust_add(torch.tensor([2**53, 0]), 1)
    tensor([9007199254740993,                1])
    """
    if is_plain(x, x) and (fast := _fast_for(value)):
        return fast(x, value)
    refuse_other_layouts("cust_add", (x, value))
    if has_torch_function_variadic(x, value):
        return handle_torch_function(cust_add, (x, value), x, value)
    if not isinstance(x, Tensor):
        raise TypeError(f"cust_add: x must be a tensor, not {type(x).__name__}")
    return _cust_add(x, value)


def _fast_for(value: Any) -> Any:
    """Returns the kernel for a number's type, or None if the number needs checks first."""
    if type(value) is float:
        return _fast_cust_add_float
    return _fast_cust_add_int if type(value) is int and -(2**63) <= value < 2**63 else None


def _cust_add_of_any_number(x: Tensor, value: Any) -> Tensor:
    """Implements torch.ops' cust_add. Graphs may enter forward mode unseen by is_plain, so has_tangent is called."""
    try:
        fast = _fast_for(value) if is_plain(x, x) and not has_tangent(x) else None
    except RuntimeError:  # has_tangent does not take sparse tensors
        refuse_other_layouts("cust_add", (x,))
        raise
    return fast(x, value) if fast else _cust_add(x, value)


def _cust_add_of_a_tensor(x: Tensor, value: Tensor) -> Tensor:
    refuse_other_layouts("cust_add", (x, value))
    return _add_scalar_tensor(x, value)


def _cust_add(x: Tensor, value: Any) -> Tensor:
    """Calls the overload for the number's type."""
    if isinstance(value, Tensor):
        return _add_scalar_tensor(x, value)
    if type(value).__module__ == "numpy" and hasattr(value, "item") and value.shape == ():
        value = value.item()
    if isinstance(value, int | float) and is_dynamo_compiling():  # it may be known only at run time
        return _any_number(x, value)
    if isinstance(value, float):
        return _cust_add_float(x, value)
    if isinstance(value, torch.SymFloat):  # which a schema's float cannot be
        _check_kind(x, is_float=True, is_complex=False)
        return torch.add(x, value)
    if isinstance(value, torch.SymBool):
        value = torch.sym_ite(value, 1, 0)
    if isinstance(value, torch.SymInt):
        return _cust_add_int(x, value)
    if isinstance(value, bool):
        value = int(value)
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise OverflowError(
                f"cust_add: {value} does not fit into 64 bits; pass it as a float if that is meant"
            )
        return _cust_add_int(x, value)
    if isinstance(value, complex):
        return _cust_add_complex(x, value.real, value.imag)
    raise TypeError(f"cust_add: value must be an int, float or complex, not {type(value).__name__}")


def _add_scalar_tensor(x: Tensor, value: Tensor) -> Tensor:
    _check_dimensions(value.shape)
    return _cust_add(x, value.item()) if _is_a_number(value) else _add_element(x, value)


def _check_dimensions(shape: Sequence[int]) -> None:
    if shape:
        raise TypeError(
            f"cust_add: value is a tensor of shape {list(shape)}; my_add and my_fast_add add "
            "two tensors, cust_add takes a number or a tensor without dimensions"
        )


def _add_element(x: Tensor, value: Tensor) -> Tensor:
    _check_kind(x, value.is_floating_point(), value.is_complex())
    if value.device.type == "cpu" and x.dtype in (torch.float16, torch.bfloat16):
        # torch.add too computes in float32, with all of the number's digits.
        return my_fast_add(x.float(), value.to(x.device, torch.float32)).to(x.dtype)
    return my_fast_add(x, value.to(x.device, x.dtype))


def _is_a_number(value: Tensor) -> bool:
    """Returns whether a tensor can be read without waiting for a GPU, and no part of torch follows it."""
    return (
        type(value) is Tensor
        and value.device.type == "cpu"
        and not value.requires_grad
        and not is_dynamo_compiling()
        and nothing_watches()
    )


def _check_kind(x: Tensor, is_float: bool, is_complex: bool) -> None:
    if (is_complex and not x.is_complex()) or (
        is_float and not (x.is_floating_point() or x.is_complex())
    ):
        raise RuntimeError(
            f"cust_add: a {'complex' if is_complex else 'float'} value cannot be added to a "
            f"{str(x.dtype).removeprefix('torch.')} tensor without changing its dtype; convert the "
            "tensor with .to()"
        )


def _reference_cust_add(x: Tensor, *number: Any) -> Tensor:
    _check_kind(x, isinstance(number[0], float), len(number) == 2)
    if not (x.is_floating_point() or x.is_complex()):
        return torch.add(x, 1)  # only for its shape; too large an int wraps in the kernel, as in C
    return torch.add(x, complex(*number) if len(number) == 2 else number[0])


def _backward_of_cust_add(_: Any, grad: Tensor) -> tuple[Tensor]:
    return (grad,)


def _batch(_: Any, in_dims: elementwise.InDims, x: Tensor, value: Any) -> tuple[Any, Any]:
    return elementwise.batch(_cust_add, in_dims, x, value)


def _batch_of_tensors(
    _: Any, in_dims: elementwise.InDims, x: Tensor, value: Tensor
) -> tuple[Any, Any]:
    shape = list(value.shape)
    if in_dims[1] is not None:
        del shape[in_dims[1]]
    _check_dimensions(shape)
    return elementwise.batch(_add_element, in_dims, x, value)


_CUST_ADD = Rules(
    *(_reference_cust_add, elementwise.batch),
    backward=_backward_of_cust_add,
    shard=elementwise.shard,
)
_cust_add_int = Entry("cust_add.int", _CUST_ADD, twin="_cust_add.int")
_cust_add_float = Entry("cust_add.float", _CUST_ADD, twin="_cust_add.float")
_cust_add_complex = Entry("cust_add.complex", _CUST_ADD)
_fast_cust_add_int, _fast_cust_add_float = _cust_add_int.fast, _cust_add_float.fast
_any_number = overload("cust_add")
# The stable ABI has no Scalar, so the overload for any number calls those for int, float and complex.
for _name, _kernel, _rule in (
    ("cust_add", _cust_add_of_any_number, _batch),
    ("cust_add.Tensor", _cust_add_of_a_tensor, _batch_of_tensors),
):
    _op = overload(_name)
    if _name not in missing:
        library.impl(_name, _kernel, "CompositeImplicitAutograd")
        torch.library.register_vmap(_op, _rule, lib=library)

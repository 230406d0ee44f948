"""Registers with torch the parts of an op that are written in Python: its meta kernel, gradients, batching,
sharding and autocast.

This module uses only torch's documented API and is correct under every transform of torch. The module `fast`
does the same in less time with private names of torch; it is used only if all of those names exist and its
check at import passes.

The public op, `torch.ops.EXTENSION.NAME`, has the library's kernels; everything above them is registered
here. Its private twin, `_NAME`, has the same kernels and no Python above them; `fast` calls it.
"""

import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function, forward_ad
from torch.compiler import is_dynamo_compiling

from .library import PACKAGE as NAMESPACE  # also loads the library
from .library import library_ops, library_problems

fast: Any
try:
    from . import fast
except Exception as error:  # any error means that a private name has changed
    fast = None
    why_not_fast: str | None = f"{type(error).__name__}: {error}"
else:
    why_not_fast = None

library = torch.library.Library(NAMESPACE, "FRAGMENT")

#: The ops that the package names but the library lacks or rejects, each with advice; the doctor shows them.
missing: dict[str, str] = {}


def overload(name: str) -> Any:
    """Returns torch.ops' object for an op of the library, such as "add" or "add.int".

    If the library lacks or rejects the op, returns a function that raises an error, so that the rest of the package works.
    """
    packet, _, which = name.partition(".")
    problem = library_problems().get(packet)
    try:
        if not problem:
            return getattr(getattr(getattr(torch.ops, NAMESPACE), packet), which or "default")
    except AttributeError:
        problem = (
            "torch refuses its schema, or has no overload of this name; an error that torch printed at the import "
            "says why"
            if packet in library_ops()
            else f"the library of {NAMESPACE} does not have this op, only {', '.join(library_ops()) or 'none'}; add "
            f"OPWRIGHT_ELEMENTWISE({name.replace('.', '_')}) or OPWRIGHT_ROWS below its struct, or "
            f'OPWRIGHT_KERNEL(LAUNCH_FUNCTION, "{name}(...) -> Tensor") to its .cu file, and build again (without '
            "CUDA, .cu files are left out)"
        )
    missing[name] = message = f"{name}: {problem}"

    def refuse(*_: Any, **__: Any) -> Any:
        raise RuntimeError(message)

    return refuse


class Rules:  # not a dataclass, which would take a third of the time of importing this package
    """Python rules for one overload of an op.

    `reference` computes the op with torch's own ops. It gives shapes and strides, derivatives in forward
    mode and under torch.func, and all derivatives if there is no `backward`.
    `backward(ctx, *grads)` is the reverse mode; it may leave out the gradients of the last arguments.
    `save(ctx, inputs, outputs)` keeps what `backward` needs.
    `batch(op, in_dims, *args)` is vmap's rule. It returns the outputs and their batch dimensions; without
    it vmap calls the op once per element of the batch.
    `autocast(op, *args)` runs the op when torch's autocast is on.
    `shard(*args)` lists the ways in which DTensor may split a call. Each way names, for every output and
    every tensor argument, the dimension it is split along, None if it is whole, or "sum" if it is to be summed.
    `decompose(*args)` computes the op with torch's own ops, which torch.compile fuses with the surrounding
    code. It returns NotImplemented if the kernel is faster.
    """

    def __init__(
        self,
        reference: Callable[..., Any],
        batch: Callable[..., tuple[Any, Any]] | None = None,
        save: Callable[..., None] | None = None,
        backward: Callable[..., Any] | None = None,
        autocast: Callable[..., Any] | None = None,
        shard: Callable[..., Any] | None = None,
        decompose: Callable[..., Any] | None = None,
    ) -> None:
        self.reference, self.batch, self.shard = reference, batch, shard
        self.save, self.backward, self.autocast = save, backward, autocast
        self.decompose = decompose


class Entry:
    """An op with all of its rules registered. `op` is correct everywhere, `fast` only where a call needs
    just the kernel, `differentiated` only where it needs just plain autograd."""

    def __init__(self, name: str, rules: Rules, twin: str | None = None) -> None:
        self.op = self.fast = self.differentiated = op = overload(name)
        self._has_shortcut, self._decompose = False, None
        if name in missing:
            return
        library.impl(name, _with_checks(name, rules.reference), "Meta")
        if rules.decompose:
            self._decompose = _with_checks(name, rules.decompose)
        backward = _backward(rules)
        if fast:
            refuse = refuse_other_layouts
            node = fast.node(name, rules, backward, refuse)
            fast.register_autograd(library, name, op, node, rules, register_shardings, refuse)
            self.fast = (
                fast.twin(library, NAMESPACE, twin, op)
                if twin
                else fast.below_autograd(NAMESPACE, name)
            )
            if rules.backward:
                self._has_shortcut, self.differentiated = True, fast.differentiated(node, self.fast)
        else:
            derivatives = _Derivatives(name, rules)
            setup = _setup(rules.save) if rules.save else None
            torch.library.register_autograd(op, backward, setup_context=setup, lib=derivatives)
            _kept.append(derivatives)
        if rules.batch:
            torch.library.register_vmap(op, _vmap_rule(op, rules.batch), lib=library)
        if rules.autocast:
            for device in ("cpu", "cuda"):
                kernel = _autocast_kernel(op, rules.autocast, device)
                library.impl(name, kernel, f"Autocast{device.upper()}")
        if rules.shard:
            _unsharded.append((op, rules.shard))

    def __call__(self, *args: Any) -> Any:
        """Calls the op by the shortest path that is correct."""
        if is_dynamo_compiling():
            result = self._decomposed(*args)
            return self.op(*args) if result is NotImplemented else result
        if self._has_shortcut and is_differentiated(*args):
            return self.differentiated(*args)
        if _unsharded:
            register_shardings()
        return self.op(*args)

    def _decomposed(self, *args: Any) -> Any:
        """Returns what `decompose` does, or NotImplemented under autocast, for which the op has its own rule."""
        if self._decompose is None or any(map(torch.is_autocast_enabled, ("cpu", "cuda"))):
            return NotImplemented
        try:
            return self._decompose(*args)
        except RuntimeError:  # the op raises a clearer error
            return NotImplemented


_kept: list[torch.library.Library] = []  # registrations end when their library is deleted


def _no(*_: Any) -> bool:
    return False


#: Whether a call with two arguments needs just the kernel; False if they are not tensors.
is_plain: Callable[[Any, Any], bool] = fast.is_plain if fast else _no
#: Whether a call needs plain autograd and nothing else of torch's.
is_differentiated: Callable[..., bool] = fast.is_differentiated if fast else _no
#: Whether no transform, trace or mode follows calls, so that a number may be read from a tensor.
nothing_watches: Callable[[], bool] = fast.nothing_watches if fast else _no


# --- What kernels refuse --------------------------------------------------------------------------


def _public_name(name: str) -> str:
    """Returns the name that users know an op by, such as rms_norm for _rms_norm_forward."""
    name = name.partition(".")[0].lstrip("_")
    known = [op for op in library_ops() if name.startswith(op)]
    return max(known, key=len, default=name)


def _with_checks(name: str, reference: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the reference with the kernels' checks of its tensors before it."""
    public = _public_name(name)
    names = library_ops().get(public, ())
    dtypes = {getattr(torch, dtype) for dtype in names}

    def kernel(*args: Any) -> Any:
        tensors = [arg for arg in args if isinstance(arg, Tensor)]
        dtype = tensors[0].dtype
        if dtypes and dtype not in dtypes:
            raise RuntimeError(
                f"{public}: dtype {str(dtype).removeprefix('torch.')} is not supported; use one of {', '.join(names)}"
            )
        dims = max(tensor.dim() for tensor in tensors)
        if dims > 25:
            raise RuntimeError(
                f"{public}: tensors of more than 25 dimensions are not supported, got {dims}"
            )
        return reference(*args)

    return kernel


def refuse_other_layouts(name: str, args: tuple[Any, ...]) -> None:
    """Raises if a tensor is sparse or nested, because the kernels take neither."""
    for arg in args:
        if isinstance(arg, Tensor) and (arg.layout != torch.strided or arg.is_nested):
            raise RuntimeError(
                f"{_public_name(name)}: only dense tensors are supported; convert sparse tensors with "
                ".to_dense(), and call the op with the .values() of nested ones"
            ) from None


# --- Gradients ------------------------------------------------------------------------------------


class _Derivatives(torch.library.Library):
    """Receives the kernel that torch.library.register_autograd makes and registers it behind a check.

    That kernel supports plain reverse mode only; the check sends all other calls to the reference.
    """

    def __init__(self, name: str, rules: Rules) -> None:
        super().__init__(NAMESPACE, "FRAGMENT")
        self.name, self.rules = name, rules

    def impl(self, op_name: Any, fn: Any, dispatch_key: str = "", **options: Any) -> None:
        name, rules = self.name, self.rules
        before = 1 if options.get("with_keyset") else 0

        def kernel(*received: Any) -> Any:
            args = received[before:]
            register_shardings()
            try:
                # Under torch.func the kernel's torch.autograd.Function is of no use.
                if has_tangent(*args) or (
                    requires_grad(*args) and (rules.backward is None or is_under_torch_func())
                ):
                    return rules.reference(*args)
                return fn(*received)
            except RuntimeError:
                refuse_other_layouts(name, args)
                raise

        super().impl(op_name, kernel, dispatch_key, **options)


def _setup(save: Callable[..., None]) -> Callable[..., None]:
    def setup(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:  # torch passes these by name
        save(ctx, inputs, output)

    return setup


def _backward(rules: Rules) -> Callable[..., Any]:
    def backward(ctx: Any, *grads: Tensor) -> Any:
        assert rules.backward is not None
        found = rules.backward(ctx, *grads)
        return (*found, *[None] * (len(ctx.needs_input_grad) - len(found)))

    return backward


def requires_grad(*args: Any) -> bool:
    """Returns whether autograd follows one of the arguments."""
    return torch.is_grad_enabled() and any(
        isinstance(arg, Tensor) and arg.requires_grad for arg in args
    )


def _has_tangent(*args: Any) -> bool:
    return any(
        forward_ad.unpack_dual(arg, level=0).tangent is not None
        for arg in args
        if isinstance(arg, Tensor)
    )


#: Whether one of the tensors has a tangent of forward mode. forward_ad's level does not tell, because
#: exported programs, compiled code and torch.func enter forward mode without setting it.
has_tangent: Callable[..., bool] = fast.has_tangent if fast else _has_tangent


class _Plain(Function):
    """A function that torch.func refuses, because it has no setup_context."""

    @staticmethod
    def forward(ctx: Any) -> None:
        pass


def is_under_torch_func() -> bool:
    """Returns whether a transform of torch.func is active."""
    try:
        _Plain.apply()
    except RuntimeError:
        return True
    return False


# --- vmap and autocast ----------------------------------------------------------------------------


def _vmap_rule(op: Any, batch: Callable[..., tuple[Any, Any]]) -> Callable[..., tuple[Any, Any]]:
    def rule(_: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[Any, Any]:
        return batch(op, in_dims, *args)

    return rule


def _autocast_kernel(op: Any, autocast: Callable[..., Any], device: str) -> Callable[..., Any]:
    def without() -> Any:
        return torch.autocast(device, enabled=False)

    below = fast.without_autocast if fast else without

    def kernel(*args: Any) -> Any:
        with below():
            return autocast(op, *args)

    return kernel


def promote(op: Any, *args: Any) -> Any:
    """Calls the op in the widest floating dtype of its arguments, as autocast does for torch's own op."""
    floating = [arg for arg in args if isinstance(arg, Tensor) and arg.is_floating_point()]
    dtypes = {tensor.dtype for tensor in floating}
    if len(dtypes) > 1:
        widest = floating[0].dtype
        for dtype in dtypes:
            widest = torch.promote_types(widest, dtype)
        args = tuple(arg.to(widest) if any(arg is t for t in floating) else arg for arg in args)
    return op(*args)


# --- DTensor --------------------------------------------------------------------------------------

_unsharded: list[tuple[Any, Callable[..., Any]]] = []


def register_shardings() -> None:
    """Tells DTensor how calls may be split, but only after a user has imported it, which takes longer than
    importing torch."""
    if not _unsharded or "torch.distributed.tensor" not in sys.modules:
        return
    from torch.distributed.tensor import Partial, Replicate, Shard
    from torch.distributed.tensor.experimental import register_sharding

    def placement(along: Any) -> Any:
        if along is None:
            return Replicate()
        return Partial(along) if isinstance(along, str) else Shard(along)

    def rule(shard: Callable[..., Any]) -> Callable[..., Any]:
        def ways(*args: Any) -> Any:
            for outputs, inputs in shard(*args):
                tensors = iter(inputs)
                yield (
                    [placement(along) for along in outputs],
                    [placement(next(tensors)) if hasattr(arg, "shape") else None for arg in args],
                )

        return lambda *args: list(ways(*args))

    while _unsharded:
        op, shard = _unsharded.pop()
        register_sharding(op)(rule(shard))


register_shardings()

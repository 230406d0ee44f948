"""Registers and calls ops in less time than registration.py, with private names of torch.

This module is optional: if one of the names is missing, or `_check` finds that its meaning has changed, the
import fails, and registration.py uses only torch's documented API, with the same results.
"""

import functools
import operator
from collections.abc import Callable
from types import CodeType
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function, forward_ad
from torch.compiler import is_dynamo_compiling
from torch.overrides import has_torch_function_variadic

#: All private names of torch that the runtime uses.
NAMES = (
    "_C._AutoDispatchBelowAutograd",
    "_C._ExcludeDispatchKeyGuard",
    "_C._after_autograd_keyset",
    "_C._after_ADInplaceOrView_keyset",
    "_C._any_requires_grad",
    "_C._are_functorch_transforms_active",
    "_C._get_operation_overload",
    "_C._get_tracing_state",
    "_C._is_any_autocast_enabled",
    "_C._len_torch_dispatch_stack",
    "_C._functorch.maybe_current_level",
    "_C._dynamo.eval_frame",
    "_C.DispatchKey.AutocastCPU",
    "_C.DispatchKey.AutocastCUDA",
    "_C.DispatchKey.CPU",
    "_C.DispatchKeySet",
    "_VF",
    "_ops.OpOverload.redispatch",
    "autograd.forward_ad._current_level",
)
(
    _BelowAutograd,
    _Without,
    _AFTER_AUTOGRAD,
    _AFTER_VERSIONS,
    _any_requires_grad,
    _is_func_active,
    _get_operation,
    _tracing_state,
    _is_any_autocast_enabled,
    _dispatch_modes,
    _func_level,
    _frames,
    _CPU,
    _CUDA,
    _KERNEL,
    _KeySet,
    _functions,
    _redispatch,
    _,
) = (operator.attrgetter(name)(torch) for name in NAMES)

_unpack_dual = _functions._unpack_dual
_AUTOCAST = _KeySet(_CPU) | _KeySet(_CUDA)

# The dispatch keys at which a private twin calls its public op, and what would go wrong otherwise.
HAND_OVER = {
    "FuncTorchDynamicLayerFrontMode": "torch.func would not see the gradient",
    "PythonDispatcher": "a graph exported for training would lose the gradient",
    "PythonTLSSnapshot": "a mode or a subclass would see an op that has no gradient",
    "Tracer": "a torch.jit.trace would lose the gradient",
    "AutocastCPU": "dtypes would not be promoted",
    "AutocastCUDA": "dtypes would not be promoted",
    "Meta": "there is no kernel",
}


# --- Questions before a call ----------------------------------------------------------------------


def is_plain(a: Tensor, b: Tensor) -> bool:
    """Returns whether a call with two arguments needs just the kernel; False if they are not tensors.

    Transforms, tracing and modes are not checked here, because under them a private twin calls its public op.
    """
    try:
        return not (
            has_torch_function_variadic(a, b)  # first: torch.fx cannot trace the branches below
            or ((a.requires_grad or b.requires_grad) and torch.is_grad_enabled())
            or forward_ad._current_level >= 0
            or is_dynamo_compiling()
        )
    except AttributeError:
        return False


def is_differentiated(*args: Any) -> bool:
    """Returns whether a call needs plain autograd and nothing else of torch's."""
    return (
        not is_dynamo_compiling()
        and torch.is_grad_enabled()
        and _any_requires_grad(*args)
        and not _is_any_autocast_enabled()
        and nothing_watches()
    )


def has_tangent(*args: Any) -> bool:
    """Returns whether one of the tensors has a tangent of forward mode."""
    for arg in args:  # noqa: SIM110  (any() with a generator takes longer)
        if isinstance(arg, Tensor) and _unpack_dual(arg, level=0)[1] is not None:
            return True
    return False


def nothing_watches() -> bool:
    """Returns whether no transform, trace or mode follows calls."""
    return (
        forward_ad._current_level < 0
        and not _is_func_active()
        and not _dispatch_modes()
        and _tracing_state() is None
    )


# --- Registration ---------------------------------------------------------------------------------


def twin(library: Any, namespace: str, name: str, op: Any) -> Callable[..., Any]:
    """Returns an op without Python around its kernel, which calls `op` at the keys of HAND_OVER."""
    library.impl(name, torch.library.fallthrough_kernel, "Autograd")
    for key in HAND_OVER:
        library.impl(name, op, key)
    return _operation(namespace, name)


def _operation(namespace: str, name: str) -> Callable[..., Any]:
    packet, _, overload = name.partition(".")
    found: Callable[..., Any] = _get_operation(f"{namespace}::{packet}", overload)[0]
    return found


def below_autograd(namespace: str, name: str) -> Callable[..., Any]:
    """Returns a function that calls the op below autograd."""
    operation = _operation(namespace, name)

    def kernel(*args: Any) -> Any:
        with _BelowAutograd():
            return operation(*args)

    return kernel


def node(name: str, rules: Any, backward: Callable[..., Any], refuse: Any) -> Callable[[], Any]:
    """Returns a function that makes an op's autograd node at its first call.

    The node's last argument is the kernel. If the kernel fails, `refuse` may raise a clearer error.
    """

    def forward(ctx: Any, *args: Any) -> Any:
        inputs, kernel = args[:-1], args[-1]
        try:
            output = kernel(*inputs)
        except RuntimeError:
            refuse(name, inputs)
            raise
        if rules.save:
            rules.save(ctx, inputs, output)
        return output

    @functools.cache
    def made() -> Any:
        methods = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
        # The base class's `apply` skips checks that were already made.
        return super(Function, type(name.partition(".")[0], (Function,), methods))

    return made


def differentiated(made: Callable[[], Any], kernel: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        return made().apply(*args, kernel)

    return call


def register_autograd(
    library: Any, name: str, op: Any, made: Any, rules: Any, prepare: Any, refuse: Any
) -> None:
    """Registers the op's kernel for autograd, which calls `prepare` first."""

    def kernel(keyset: Any, *args: Any) -> Any:
        prepare()
        try:
            if has_tangent(*args):
                return rules.reference(*args)
            if not (_any_requires_grad(*args) and torch.is_grad_enabled()):
                return _redispatch(op, keyset & _AFTER_AUTOGRAD, *args)
            # Under torch.func our own node would be correct in only some releases of torch.
            if rules.backward is None or _func_level() is not None:
                return rules.reference(*args)
        except RuntimeError:
            refuse(name, args)
            raise

        def below(*args: Any) -> Any:
            with _BelowAutograd():
                return _redispatch(op, keyset & _AFTER_AUTOGRAD, *args)

        return made().apply(*args, below)

    library.impl(name, kernel, "Autograd", with_keyset=True)


def register_mutation(library: Any, name: str, op: Any, check: Callable[..., None]) -> None:
    """Registers an op that writes into `out`: it calls `check` first and increments the version of `out`, by
    which autograd notices that a saved tensor was overwritten."""

    def checked(keyset: Any, *args: Any, out: Tensor) -> None:
        # Looking for tangents leaves nodes in a traced graph, at which Inductor fails for an op that writes.
        is_traced = _dispatch_modes() and forward_ad._current_level < 0 and not _is_func_active()
        check(*args, out, tangents=not is_traced)
        with _BelowAutograd():
            _redispatch(op, keyset & _AFTER_AUTOGRAD, *args, out=out)

    def changed(keyset: Any, *args: Any, out: Tensor) -> None:
        torch.autograd.graph.increment_version(out)
        _redispatch(op, keyset & _AFTER_VERSIONS, *args, out=out)

    library.impl(name, checked, "Autograd", with_keyset=True)
    library.impl(name, changed, "ADInplaceOrView", with_keyset=True)


def without_autocast() -> Any:
    """Returns a context in which autocast is off."""
    return _Without(_AUTOCAST)


# --- The check ------------------------------------------------------------------------------------


def _check() -> None:
    """Tries the names on ops of torch, and raises if one no longer means what it did."""
    if not nothing_watches():
        raise ImportError(
            "imported under a mode or a transform of torch, where private names cannot be checked"
        )
    negative, as_kernel = torch.ops.aten.neg.default, _KeySet(_KERNEL)
    operation = _operation("aten", "neg")
    with torch.inference_mode(False), torch.enable_grad():  # the importer may have set either
        leaf = torch.empty(1, dtype=torch.float32, device="cpu", requires_grad=True)
        plain = leaf.detach()
        with _BelowAutograd():
            below = operation(leaf)
        with torch.autocast("cpu", torch.bfloat16), without_autocast():
            uncast = torch.dot(plain, plain)
        with forward_ad.dual_level():
            level = forward_ad._current_level
        below_keys = [
            _redispatch(negative, as_kernel & keys, leaf).requires_grad
            for keys in (_AFTER_AUTOGRAD, _AFTER_VERSIONS)
        ]
        results = (
            *(_any_requires_grad(leaf, None, 1.0), not _any_requires_grad(plain, None)),
            *(operation(leaf).requires_grad, not below.requires_grad, not any(below_keys)),
            *(uncast.dtype == torch.float32, not _is_any_autocast_enabled() or _is_autocast_on()),
            *(level == 0, _unpack_dual(plain, level=0)[1] is None),
            _func_level() is None,
        )
    if not all(results):
        raise ImportError("private names of torch have changed their meaning")


def _is_autocast_on() -> bool:
    return any(torch.is_autocast_enabled(device) for device in ("cpu", "cuda"))


def _hide_from_compilers() -> None:
    """Excludes this file's kernels from torch.compile, which is to compile only the user's code."""
    skip = _frames._FrameExecStrategy(_frames._FrameAction.SKIP, _frames._FrameAction.SKIP)
    for make in (below_autograd, register_autograd, register_mutation):
        for code in make.__code__.co_consts:
            if isinstance(code, CodeType):
                _frames.set_code_exec_strategy(code, skip)


_check()
_hide_from_compilers()

"""What torch is told of an op: its meta kernel, its gradients, how it batches, autocast.

The public op, `torch.ops.EXTENSION.NAME`, is right under every transform of torch: its
kernels are the library's, and everything above them is registered here. Its private twin, `_NAME`,
has the same kernels and no Python above them, which is what makes a small call fast; wherever torch
does more than call a kernel, the twin hands over to the public op.
"""

import functools
from collections.abc import Callable
from types import CodeType
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function, forward_ad
from torch.compiler import is_dynamo_compiling
from torch.overrides import has_torch_function_variadic

from .library import PACKAGE as NAMESPACE  # loads the library, too
from .library import library_ops

library = torch.library.Library(NAMESPACE, "FRAGMENT")

# Where torch does more than call a kernel, and what would be wrong without the public op.
HAND_OVER = {
    "FuncTorchDynamicLayerFrontMode": "torch.func would not see the gradient",
    "PythonDispatcher": "a graph exported for training would lose the gradient",
    "PythonTLSSnapshot": "a mode or a subclass would see an op that has no gradient",
    "Tracer": "a torch.jit.trace would lose the gradient",
    "AutocastCPU": "dtypes would not be promoted",
    "AutocastCUDA": "dtypes would not be promoted",
    "Meta": "there is no kernel",
}

AFTER_AUTOGRAD = torch._C._after_autograd_keyset
_AUTOCAST = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU) | torch._C.DispatchKeySet(
    torch._C.DispatchKey.AutocastCUDA
)


def register(name: str, key: str, kernel: Any, with_keyset: bool = False) -> None:
    """library.impl, without the bookkeeping that takes as long as the registration itself."""
    library.m.impl(name, key, kernel, with_keyset)


#: The ops that the package names and the library does not have, each with what to do; the doctor shows them.
missing: dict[str, str] = {}


def overload(name: str) -> Any:
    """torch.ops' object for a name of the library's, such as "add" or "add.int".

    Of an op that the library does not have, a function that says so: the rest of the package works.
    """
    packet, _, which = name.partition(".")
    try:
        return getattr(getattr(getattr(torch.ops, NAMESPACE), packet), which or "default")
    except AttributeError:
        missing[name] = message = (
            f"{name}: the library of {NAMESPACE} does not have this op, only {', '.join(library_ops())}; add "
            f"OPWRIGHT_ELEMENTWISE({name.replace('.', '_')}) below its struct, or OPWRIGHT_KERNEL(LAUNCH_FUNCTION, "
            f'"{name}(...) -> Tensor") to its .cu file, and build again (without CUDA, .cu files are left out)'
        )

    def refuse(*_: Any, **__: Any) -> Any:
        raise RuntimeError(message)

    return refuse


class Rules:  # no dataclass, which would take a third of the time of importing this package
    """What the library cannot say of one overload of its ops.

    `reference` is the op made of torch's own: it gives shapes and strides, derivatives in forward
    mode and under torch.func, and all derivatives where there is no `backward`. `backward(ctx,
    *grads)` is the reverse mode, for which `save(ctx, inputs, outputs)` keeps what is needed.
    `batch(op, in_dims, *args)` is vmap's rule: the outputs, and where their batch dimension is;
    without it vmap calls the op once per element of the batch.
    `autocast(op, *args)` runs the op where torch's autocast is on.
    """

    def __init__(
        self,
        reference: Callable[..., Any],
        batch: Callable[..., tuple[Any, Any]] | None = None,
        save: Callable[..., None] | None = None,
        backward: Callable[..., Any] | None = None,
        autocast: Callable[..., Any] | None = None,
    ) -> None:
        self.reference, self.batch = reference, batch
        self.save, self.backward, self.autocast = save, backward, autocast


class Entry:
    """An op that torch knows all of. `op` is right everywhere, `fast` where a kernel is all that is
    wanted, `differentiated` where plain autograd is."""

    def __init__(self, name: str, rules: Rules, twin: str | None = None) -> None:
        self.op = op = overload(name)
        if name in missing:
            self.fast, self._has_backward = op, False
            return
        self.fast = _below_autograd(op)
        self._has_backward = rules.backward is not None
        self._node = node = functools.cache(lambda: _node(op, rules))
        register(name, "Meta", rules.reference)
        register(name, "Autograd", _autograd_kernel(op, node, rules), with_keyset=True)
        if rules.batch:
            register(name, "FuncTorchBatched", _vmap_kernel(op, rules.batch))
        if rules.autocast:
            kernel = _autocast_kernel(op, rules.autocast)
            register(name, "AutocastCPU", kernel)
            register(name, "AutocastCUDA", kernel)
        if twin:
            register(twin, "Autograd", torch.library.fallthrough_kernel)
            for key in HAND_OVER:
                register(twin, key, op)
            packet, _, which = twin.partition(".")  # the kernel alone, without Python around it
            self.fast = torch._C._get_operation_overload(f"{NAMESPACE}::{packet}", which)[0]

    def __call__(self, *args: Any) -> Any:
        """The op, by the shortest way that is right."""
        if self._has_backward and is_differentiated(*args):
            return self.differentiated(*args)
        return self.op(*args)

    def differentiated(self, *args: Any) -> Any:
        return self._node().apply(self.fast, *args)


def is_plain(a: Tensor, b: Tensor) -> bool:
    """Whether a kernel is all that is wanted of two tensors; False where they are none. What is not
    asked here, transforms, tracing and modes, makes a private twin hand over to its public op."""
    try:
        return not (
            a.requires_grad
            or b.requires_grad
            or forward_ad._current_level >= 0
            or has_torch_function_variadic(a, b)
            or is_dynamo_compiling()
        )
    except AttributeError:
        return False


def is_differentiated(*args: Any) -> bool:
    """Whether plain autograd, and nothing else of torch's, wants to know of a call."""
    return (
        not is_dynamo_compiling()
        and torch.is_grad_enabled()
        and torch._C._any_requires_grad(*args)
        and not torch._C._is_any_autocast_enabled()
        and nothing_watches()
    )


def nothing_watches() -> bool:
    return (
        forward_ad._current_level < 0
        and not torch._C._are_functorch_transforms_active()
        and not torch._C._len_torch_dispatch_stack()
        and torch._C._get_tracing_state() is None
    )


# --- Gradients ------------------------------------------------------------------------------------


def _node(op: Any, rules: Rules) -> Any:
    def forward(ctx: Any, kernel: Any, *args: Any) -> Any:
        outputs = kernel(*args)
        if rules.save:
            rules.save(ctx, args, outputs)
        return outputs

    def backward(ctx: Any, *grads: Tensor) -> Any:
        assert rules.backward is not None
        return (None, *rules.backward(ctx, *grads))

    methods = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    node = type(op._opname, (Function,), methods)
    return super(Function, node)  # whose `apply` asks nothing that has been asked before


def _below_autograd(op: Any) -> Callable[..., Any]:
    def kernel(*args: Any) -> Any:
        with torch._C._AutoDispatchBelowAutograd():
            return op._op(*args)

    return kernel


def _autograd_kernel(op: Any, node: Any, rules: Rules) -> Callable[..., Any]:
    def kernel(keyset: Any, *args: Any) -> Any:
        def below(*args: Any) -> Any:
            with torch._C._AutoDispatchBelowAutograd():
                return op.redispatch(keyset & AFTER_AUTOGRAD, *args)

        if has_tangent(*args):
            return rules.reference(*args)
        if not (torch.is_grad_enabled() and torch._C._any_requires_grad(*args)):
            return below(*args)
        # Under torch.func a node of our own would be right in some releases of torch alone.
        if rules.backward is None or torch._C._functorch.maybe_current_level() is not None:
            return rules.reference(*args)
        return node().apply(below, *args)

    return kernel


def has_tangent(*args: Any) -> bool:
    """Whether forward mode follows one of the tensors. Each is asked: an exported program, compiled
    code and torch.func enter forward mode without a word to forward_ad."""
    return any(
        torch._VF._unpack_dual(arg, level=0)[1] is not None
        for arg in args
        if isinstance(arg, Tensor)
    )


# --- vmap and autocast -------------------------------------------------------------------------------------


def _vmap_kernel(op: Any, batch: Callable[..., tuple[Any, Any]]) -> Callable[..., Any]:
    """What torch.library.register_vmap registers."""

    def rule(_: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[Any, Any]:
        return batch(op, in_dims, *args)

    def kernel(*args: Any) -> Any:
        from torch._functorch.autograd_function import custom_function_call_vmap_helper
        from torch._functorch.pyfunctorch import retrieve_current_functorch_interpreter

        interpreter = retrieve_current_functorch_interpreter()
        return custom_function_call_vmap_helper(interpreter, rule, op, *args)

    return kernel


def _autocast_kernel(op: Any, autocast: Callable[..., Any]) -> Callable[..., Any]:
    def kernel(*args: Any) -> Any:
        with torch._C._ExcludeDispatchKeyGuard(_AUTOCAST):
            return autocast(op, *args)

    return kernel


def promote(op: Any, *args: Any) -> Any:
    """Autocast's rule where torch's own op takes mixed dtypes: the widest floating one is used."""
    floating = [arg for arg in args if isinstance(arg, Tensor) and arg.is_floating_point()]
    dtypes = {tensor.dtype for tensor in floating}
    if len(dtypes) > 1:
        widest = floating[0].dtype
        for dtype in dtypes:
            widest = torch.promote_types(widest, dtype)
        args = tuple(arg.to(widest) if any(arg is t for t in floating) else arg for arg in args)
    return op(*args)


# --- torch.compile --------------------------------------------------------------------------------


def _hide_from_compilers() -> None:
    """Where torch calls a kernel of this file while it runs a user's code under torch.compile, the
    kernel runs as it is: to be compiled is for the user's code."""
    frames = torch._C._dynamo.eval_frame
    skip = frames._FrameExecStrategy(frames._FrameAction.SKIP, frames._FrameAction.SKIP)
    for make in (_below_autograd, _autograd_kernel, _autocast_kernel):
        for code in make.__code__.co_consts:
            if isinstance(code, CodeType):
                frames.set_code_exec_strategy(code, skip)


_hide_from_compilers()

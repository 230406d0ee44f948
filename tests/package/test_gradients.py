"""Gradients under every transform: each cell of the table gives what torch's own op gives there.

A cell is a way of running a program, a transform of it, and which of the two is applied first. The
program is not linear, so that a gradient that was lost somewhere changes every result. Where
torch's own op raises, ours may do so too; a wrong number is never right.
"""

import functools
import itertools

import pytest
import torch
from conftest import DIFFERENTIABLE, Differentiable
from torch._subclasses import FakeTensor
from torch.autograd import forward_ad
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._pytree import tree_leaves
from torch.utils.checkpoint import checkpoint

BATCH = 3


def leaves(*tensors):
    return [tensor.detach().clone().requires_grad_() for tensor in tensors]


def loss(f):
    return lambda *tensors: f(*tensors).sum()


def batched(*tensors):
    return [torch.stack([tensor * (1 + i) for i in range(BATCH)]) for tensor in tensors]


def all_of(tensors):
    return tuple(range(len(tensors)))


# --- Transforms: of a program f, at some tensors --------------------------------------------------


def backward(f, *tensors):
    inputs = leaves(*tensors)
    loss(f)(*inputs).backward()
    return [tensor.grad for tensor in inputs]


def backward_of_one_leaf(f, first, *rest):
    (leaf,) = leaves(first)
    loss(f)(leaf, *rest).backward()
    return leaf.grad


def double_backward(f, *tensors):
    inputs = leaves(*tensors)
    grads = torch.autograd.grad(loss(f)(*inputs), inputs, create_graph=True)
    return torch.autograd.grad(sum(grad.square().sum() for grad in grads), inputs)


def grad(f, *tensors):
    return torch.func.grad(loss(f), all_of(tensors))(*tensors)


def vmap_of_grad(f, *tensors):
    return torch.vmap(torch.func.grad(loss(f), all_of(tensors)))(*batched(*tensors))


def vmap_of_grad_over_the_first(f, first, *rest):
    in_dims = (0, *[None] * len(rest))
    grads = torch.func.grad(loss(f), all_of((first, *rest)))
    return torch.vmap(grads, in_dims)(*batched(first), *rest)


def grad_of_vmap(f, *tensors):
    return torch.func.grad(lambda *b: torch.vmap(f)(*b).sum(), all_of(tensors))(*batched(*tensors))


def grad_of_vmap_over_the_first(f, first, *rest):
    in_dims = (0, *[None] * len(rest))
    mapped = torch.func.grad(lambda *b: torch.vmap(f, in_dims)(*b).sum(), all_of((first, *rest)))
    return mapped(*batched(first), *rest)


def backward_through_vmap(f, *tensors):
    inputs = leaves(*batched(*tensors))
    torch.vmap(f)(*inputs).sum().backward()
    return [tensor.grad for tensor in inputs]


def jvp(f, *tensors):
    return torch.func.jvp(f, tensors, tuple(torch.cos(tensor) for tensor in tensors))


def dual(f, *tensors):
    with forward_ad.dual_level():
        duals = [forward_ad.make_dual(tensor, torch.cos(tensor)) for tensor in tensors]
        return forward_ad.unpack_dual(f(*duals)).tangent


def jacfwd(f, *tensors):
    return torch.func.jacfwd(f, all_of(tensors))(*tensors)


def jacrev(f, *tensors):
    return torch.func.jacrev(f, all_of(tensors))(*tensors)


def hessian(f, *tensors):
    return torch.func.hessian(loss(f), all_of(tensors))(*tensors)


def functionalize(f, *tensors):
    return backward(torch.func.functionalize(f), *tensors)


def grad_of_functionalize(f, *tensors):
    return grad(torch.func.functionalize(f), *tensors)


def checkpointed(f, *tensors):
    return backward(lambda *t: checkpoint(f, *t, use_reentrant=False), *tensors)


def checkpointed_reentrant(f, *tensors):
    return backward(lambda *t: checkpoint(f, *t, use_reentrant=True), *tensors)


TRANSFORMS = [
    *(backward, backward_of_one_leaf, double_backward, grad, vmap_of_grad),
    *(vmap_of_grad_over_the_first, grad_of_vmap, grad_of_vmap_over_the_first),
    *(backward_through_vmap, jvp, dual, jacfwd, jacrev, hessian, functionalize),
    *(grad_of_functionalize, checkpointed, checkpointed_reentrant),
]


# --- Ways of running: of a program, that will be called with such tensors -------------------------


class Program(torch.nn.Module):
    def __init__(self, f):
        super().__init__()
        self.f = f

    def forward(self, *tensors):
        return self.f(*tensors)


def eager(f, *_):
    return f


def compiled(f, *_):
    return torch.compile(f, backend="aot_eager")


def exported(f, *tensors):
    return torch.export.export(Program(f), tensors).run_decompositions().module()


def exported_for_training(f, *tensors):
    return torch.export.export(Program(f), tensors).module()


def exported_strictly(f, *tensors):
    return torch.export.export(Program(f), tensors, strict=True).module()


def traced_by_make_fx(f, *tensors):
    return make_fx(f)(*tensors)


def traced_before_dispatch(f, *tensors):
    return make_fx(f, pre_dispatch=True)(*tensors)


def traced_with_fakes(f, *tensors):
    return make_fx(f, tracing_mode="fake")(*tensors)


WAYS = [
    *(eager, compiled, exported, exported_for_training, exported_strictly),
    *(traced_by_make_fx, traced_before_dispatch, traced_with_fakes),
]


def transform_of_way(way, transform, f, tensors):
    shapes = [t[0] for t in batched(*tensors)]
    return transform(way(f, *shapes), *tensors)


def way_of_transform(way, transform, f, tensors):
    def whole(*inputs):
        return transform(f, *inputs)

    return way(whole, *(tensor + 1 for tensor in tensors))(*tensors)


# --- The table ------------------------------------------------------------------------------------


def outcome(order, way, transform, f, tensors):
    """The cell's numbers, or the exception it raised."""
    torch._dynamo.reset()
    try:
        result = order(way, transform, f, tensors)
        # torch.export of torch.func may hand out what it traced with.
        if any(isinstance(leaf, FakeTensor) for leaf in tree_leaves(result)):
            raise RuntimeError("there are no numbers in the result")
    except Exception as error:
        result = error
    return RuntimeError("a transform is left behind") if left_behind() else result


def left_behind():
    """Whether a failed trace left its levels behind; they are removed, for the next cell's sake."""
    functorch = torch._C._functorch
    found = functorch.maybe_current_level() is not None
    while functorch.maybe_current_level() is not None:
        functorch.pop_dynamic_layer_stack()
    try:
        torch._C._enter_dual_level()
    except RuntimeError:  # there is one level of forward mode, and it was not left
        found = True
    torch._C._exit_dual_level(level=0)
    forward_ad._current_level = -1
    torch._C._autograd._saved_tensors_hooks_enable()  # without them no later cell could use a checkpoint
    return found


def tensors_of(case, device):
    torch.manual_seed(0)
    return tuple(case.tensors(device))


# Eager ones are asked for by many cells.
@functools.cache
def torchs_outcome(order, way, transform, case, device):
    program = case.program(case.reference)
    return outcome(order, way, transform, program, tensors_of(case, device))


def agree(one, other):
    try:
        torch.testing.assert_close(one, other)
    except Exception:
        return False
    return True


# Everything else that these share, they share with the ops that see the whole table.
FEW_WAYS = {eager, compiled, exported_for_training, traced_by_make_fx}


def cells():
    for case, way, transform in itertools.product(DIFFERENTIABLE, WAYS, TRANSFORMS):
        if case.sees_every_way or way in FEW_WAYS:
            yield case, transform_of_way, way, transform
        # torch.func cannot be traced before dispatch: it leaves its levels behind.
        if case.sees_every_way and way not in (eager, traced_before_dispatch):
            yield case, way_of_transform, way, transform


def name(value):
    return getattr(value, "__name__", None) or str(value)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("case", "order", "way", "transform"), list(cells()), ids=name)
def test_same_as_torchs(case: Differentiable, order, way, transform, device):
    plain = torchs_outcome(transform_of_way, eager, transform, case, device)
    expected = torchs_outcome(order, way, transform, case, device)
    program = case.program(case.function)
    actual = outcome(order, way, transform, program, tensors_of(case, device))
    torchs = [result for result in (expected, plain) if not isinstance(result, Exception)]
    if isinstance(actual, Exception):
        # Where torch's own op raises too, or gives other numbers than eagerly, it is no example.
        if len(torchs) == 2 and agree(expected, plain):
            raise AssertionError("torch's own op does this, ours raises") from actual
    elif len(torchs) == 2 and agree(expected, plain):
        torch.testing.assert_close(actual, expected)
    elif torchs:  # never silently wrong: one of torch's two answers
        assert any(agree(actual, result) for result in torchs), (actual, torchs)

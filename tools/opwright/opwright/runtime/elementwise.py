"""Rules shared by elementwise ops: batching, sharding, and gradients of broadcast operands."""

from collections.abc import Iterator
from typing import Any

from torch import Tensor

InDims = tuple[int | None, ...]


def batch(op: Any, in_dims: InDims, *args: Any) -> tuple[Any, Any]:
    """Calls the op with the batch as the first dimension; the others broadcast as they do without it."""
    pairs = list(zip(args, in_dims, strict=True))
    rank = max(arg.dim() - (dim is not None) for arg, dim in pairs if isinstance(arg, Tensor))

    def batch_first(arg: Any, dim: int | None) -> Any:
        if dim is None:
            return arg
        moved = arg.movedim(dim, 0)
        # Broadcasting aligns the last dimensions, so missing ones go right after the batch.
        return moved.reshape(moved.shape[0], *[1] * (rank - moved.dim() + 1), *moved.shape[1:])

    results = op(*(batch_first(arg, dim) for arg, dim in pairs))
    return results, 0 if isinstance(results, Tensor) else (0,) * len(results)


def shard(*args: Any) -> Iterator[tuple[list[int | None], list[int | None]]]:
    """Yields whole tensors, then each dimension of the result; operands broadcast along it stay whole."""
    shapes = [arg.shape for arg in args if hasattr(arg, "shape")]
    rank = max(map(len, shapes))
    yield [None], [None] * len(shapes)
    for dim in range(-rank, 0):
        along = [len(s) + dim if len(s) + dim >= 0 and s[dim] != 1 else None for s in shapes]
        if along != [None] * len(shapes):
            yield [rank + dim], along


def save_shapes(ctx: Any, inputs: tuple[Any, ...], _: Tensor) -> None:
    ctx.shapes = [arg.shape if isinstance(arg, Tensor) else None for arg in inputs]


def gradients(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
    """Sums each needed gradient over the dimensions along which its argument was broadcast."""
    return tuple(
        grad.sum_to_size(shape) if needed and grad is not None else None
        for grad, shape, needed in zip(grads, ctx.shapes, ctx.needs_input_grad, strict=False)
    )

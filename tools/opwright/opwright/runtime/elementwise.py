"""What elementwise ops have in common: how they batch, and gradients of what was broadcast."""

from typing import Any

from torch import Tensor

from .library import library_ops

InDims = tuple[int | None, ...]


def check(op: str, *tensors: Tensor) -> None:
    """Refuses on meta tensors, and when traced, what the kernels refuse."""
    dtypes = library_ops()[op]
    for tensor in tensors:
        name = str(tensor.dtype).removeprefix("torch.")
        if name not in dtypes:
            supported = ", ".join(dtypes)
            raise RuntimeError(f"{op}: dtype {name} is not supported; use one of {supported}")
        if tensor.dim() > 25:
            raise RuntimeError(
                f"{op}: tensors of more than 25 dimensions are not supported, got {tensor.dim()}"
            )


def batch(op: Any, in_dims: InDims, *args: Any) -> tuple[Tensor, int]:
    """The batch is one more dimension in front, behind which shapes broadcast as without it."""
    pairs = list(zip(args, in_dims, strict=True))
    rank = max(arg.dim() - (dim is not None) for arg, dim in pairs if isinstance(arg, Tensor))

    def batch_first(arg: Any, dim: int | None) -> Any:
        if dim is None:
            return arg
        moved = arg.movedim(dim, 0)
        # Broadcasting aligns the last dimensions: fill up to the common rank behind the batch.
        return moved.reshape(moved.shape[0], *[1] * (rank - moved.dim() + 1), *moved.shape[1:])

    return op(*(batch_first(arg, dim) for arg, dim in pairs)), 0


def save_shapes(ctx: Any, inputs: tuple[Any, ...], _: Tensor) -> None:
    ctx.shapes = [arg.shape if isinstance(arg, Tensor) else None for arg in inputs]


def gradients(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
    """One for each argument that needs one, summed over what was broadcast."""
    return tuple(
        grad.sum_to_size(shape) if needed and grad is not None else None
        for grad, shape, needed in zip(grads, ctx.shapes, ctx.needs_input_grad, strict=False)
    )

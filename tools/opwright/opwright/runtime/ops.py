"""An extension's list of ops, `OPS` in its module _ops, which the doctor, smoke tests, benchmarks and tests use."""

import importlib
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .library import PACKAGE, library_ops

VECTORS = ((0,), (1,), (7,), (1021,), (100_003,))
ROWS = ((1, 1), (3, 128), (2, 4096), (7, 1021), (3, 8192))


def joined(result: Any) -> Tensor:
    """Stacks an op's results, which have one shape, into one tensor; returns a single result as it is."""
    return torch.stack(result) if isinstance(result, tuple) else result


class Op:
    """An op, and torch's own equivalent.

    Arguments are expressions of `x` and `y`, two tensors of one shape and dtype, and `n`, a number.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        arguments: str,
        reference: str,  #: an expression for torch's own function
        reference_arguments: str | None = None,  #: None means the same as `arguments`
        shapes: tuple[tuple[int, ...], ...] = VECTORS,
        moves: int = 3,  #: how many tensors of x's size a call reads and writes
        tolerance: float = 0.0,  #: the relative difference allowed, in units of the dtype's epsilon
        timed: bool = False,  #: whether the smoke test, doctor, `bench --check` and `--layouts` time this op
        differentiable: bool = True,
        mixes_dtypes: bool = False,  #: whether its tensors may have several dtypes
        #: whether it takes any shapes that broadcast; None means yes if `shapes` are vectors
        elementwise: bool | None = None,
    ) -> None:
        self.function, self.name, self.arguments = function, function.__name__, arguments
        self.reference, self.reference_arguments = reference, reference_arguments or arguments
        self.shapes, self.moves, self.tolerance, self.timed = shapes, moves, tolerance, timed
        self.differentiable, self.mixes_dtypes = differentiable, mixes_dtypes
        self.elementwise = len(shapes[0]) == 1 if elementwise is None else elementwise

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The dtypes that the library has kernels for; empty if it lacks the op."""
        return library_ops().get(self.name, ())

    def arguments_for(self, x: Tensor, y: Tensor, *, reference: bool = False) -> tuple[Any, ...]:
        """Returns the arguments to call the function, or the reference, with."""
        text = self.reference_arguments if reference else self.arguments
        is_whole = not (x.is_floating_point() or x.is_complex())
        return eval(f"({text},)", {"x": x, "y": y, "n": 3 if is_whole else 0.5})  # type: ignore[no-any-return]

    def torchs_own(self) -> Callable[..., Tensor]:
        return eval(self.reference, {"torch": torch})  # type: ignore[no-any-return]

    @property
    def small(self) -> tuple[int, ...]:
        """A shape for tests that look at every element: a matrix for elementwise ops, or one of the op's rank."""
        return (4,) * (2 if self.elementwise else len(self.shapes[0]))

    @property
    def takes_two_tensors(self) -> bool:
        x = torch.ones(self.small)
        return sum(isinstance(argument, Tensor) for argument in self.arguments_for(x, x)) > 1

    def shape_of(self, elements: int) -> tuple[int, ...]:
        """Returns a shape of the op's rank with that many elements, a power of two."""
        rank = len(self.shapes[0])
        first = 1 << (int(math.log2(elements)) // rank)
        return (*[first] * (rank - 1), elements // first ** (rank - 1))


def listed() -> tuple[Op, ...]:
    """Returns the extension's list of ops."""
    return tuple(importlib.import_module(f"{PACKAGE}._ops").OPS)


def timed_op() -> Op:
    """Returns the first op that is marked `timed`, or else the first."""
    ops = listed()
    if not ops:
        raise RuntimeError(f"OPS in {PACKAGE}/_ops.py has no entry; add one per op")
    return next((op for op in ops if op.timed), ops[0])


def smoke_spec(ops: tuple[Op, ...]) -> dict[str, Any]:
    """Returns the calls of a release's smoke test, which compares each op of torch.ops with torch's own."""
    checks = [
        {
            "name": op.name,
            "call": f"torch.ops.{PACKAGE}.{op.name}({op.arguments})",
            "reference": f"{op.reference}({op.reference_arguments})",
            "dtypes": op.dtypes,
            "shapes": op.shapes,
        }
        for op in ops
    ]
    timed = timed_op()
    timing = {
        "name": timed.name,
        "dtype": "float32",
        "shape": timed.shape_of(1 << 28),
        "bytes_per_element": 4 * timed.moves,
    }
    return {"checks": checks, "timing": timing}

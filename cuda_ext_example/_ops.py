"""The one list of ops: the doctor, the smoke test, the benchmark and the tests go by it.

What an op computes stands in the library, what torch must know of it beside the function that users
call. Here is how each is tried.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from cuda_ext_example._add import my_add, my_fast_add
from cuda_ext_example._cust_add import cust_add
from cuda_ext_example._library import dtypes_of
from cuda_ext_example._rms_norm import rms_norm

__all__ = ["cust_add", "my_add", "my_fast_add", "rms_norm"]

VECTORS = ((0,), (1,), (7,), (1021,), (100_003,))
ROWS = ((1, 1), (3, 128), (2, 4096), (7, 1021), (3, 8192))


class Op:
    """An op, and what torch calls the same.

    Arguments are expressions of `x` and `y`, two tensors of one shape and dtype, and `n`, a number.
    """

    def __init__(
        self,
        function: Callable[..., Tensor],
        arguments: str,
        reference: str,  #: the name of torch's own function
        reference_arguments: str | None = None,  #: None: the same
        shapes: tuple[tuple[int, ...], ...] = VECTORS,
        moves: int = 3,  #: how many tensors of x's size a call reads and writes
        tolerance: float = 0.0,  #: what results may differ by, in units of the dtype's epsilon
    ) -> None:
        self.function, self.name, self.arguments = function, function.__name__, arguments
        self.reference, self.reference_arguments = reference, reference_arguments or arguments
        self.shapes, self.moves, self.tolerance = shapes, moves, tolerance

    @property
    def dtypes(self) -> tuple[str, ...]:
        return dtypes_of(self.name)

    def arguments_for(self, x: Tensor, y: Tensor, *, reference: bool = False) -> tuple[Any, ...]:
        """What to call the function, or the reference, with."""
        text = self.reference_arguments if reference else self.arguments
        is_whole = not (x.is_floating_point() or x.is_complex())
        return eval(f"({text},)", {"x": x, "y": y, "n": 3 if is_whole else 0.5})  # type: ignore[no-any-return]

    def torchs_own(self) -> Callable[..., Tensor]:
        return eval(self.reference, {"torch": torch})  # type: ignore[no-any-return]


OPS = (
    Op(my_add, "x, y", "torch.add"),
    Op(my_fast_add, "x, y", "torch.add"),
    Op(cust_add, "x, n", "torch.add", moves=2),
    Op(
        rms_norm,
        "x, y[0], 1e-5",
        "torch.nn.functional.rms_norm",
        "x, x.shape[-1:], y[0], 1e-5",
        shapes=ROWS,
        moves=2,
        tolerance=4,
    ),
)


def smoke_spec() -> dict[str, Any]:
    """What a release's smoke test runs: each op of torch.ops beside torch's own."""
    checks = [
        {
            "name": op.name,
            "call": f"torch.ops.cuda_ext_example.{op.name}({op.arguments})",
            "reference": f"{op.reference}({op.reference_arguments})",
            "dtypes": op.dtypes,
            "shapes": op.shapes,
        }
        for op in OPS
    ]
    timing = {
        "name": "my_fast_add",
        "dtype": "float32",
        "shape": [1 << 28],
        "bytes_per_element": 12,
    }
    return {"checks": checks, "timing": timing}

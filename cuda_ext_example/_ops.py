"""The list of ops that the doctor, the smoke test, the benchmark and the tests use, and how to test each.

Kernels are in csrc/; the rules that torch needs are beside the function that users call.
"""

from cuda_ext_example._add import my_add, my_fast_add
from cuda_ext_example._cust_add import cust_add
from cuda_ext_example._modules import RMSNorm
from cuda_ext_example._opwright.ops import ROWS, Op
from cuda_ext_example._rms_norm import add_rms_norm, rms_norm
from cuda_ext_example._silu_mul import silu_mul

__all__ = ["RMSNorm", "add_rms_norm", "cust_add", "my_add", "my_fast_add", "rms_norm", "silu_mul"]

OPS = (
    Op(my_add, "x, y", "torch.add"),
    Op(my_fast_add, "x, y", "torch.add", timed=True),
    Op(cust_add, "x, n", "torch.add", moves=2),
    Op(
        rms_norm,
        "x, y[0], 1e-5",
        "torch.nn.functional.rms_norm",
        "x, x.shape[-1:], y[0], 1e-5",
        shapes=ROWS,
        moves=2,
        tolerance=4,
        mixes_dtypes=True,
    ),
    Op(
        add_rms_norm,
        "x, y.expand_as(x), y[0], 1e-5, 1.0",
        "(lambda x, y, shape, w, eps: (torch.nn.functional.rms_norm(x + y, shape, w, eps), x + y))",
        "x, y, x.shape[-1:], y[0] + 1, 1e-5",
        shapes=ROWS,
        moves=4,
        tolerance=4,
    ),
    Op(
        silu_mul,
        "x, y",
        # In x's dtype torch would round twice.
        "(lambda x, y: (torch.nn.functional.silu(x.double()) * y.double()).to(x.dtype))",
        tolerance=4,
    ),
)

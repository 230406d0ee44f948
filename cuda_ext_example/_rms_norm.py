"""rms_norm: each row divided by the root of its mean square, and multiplied by a weight; add_rms_norm: the same of
a sum, which it returns too."""

import torch
from torch import Tensor

from cuda_ext_example._opwright.registration import is_plain
from cuda_ext_example._opwright.rows import Norm


def rms_norm(
    x: Tensor,
    weight: Tensor | None = None,
    eps: float | None = None,
    weight_offset: float = 0.0,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Divides each row of the last dimension by the root of its mean square.

    `weight`, one element per column, multiplies the result; `weight_offset` is added to it first, in float32:
    1 for Gemma's norm. `eps` is added to the mean square, and is by default what
    torch.nn.functional.rms_norm takes. Sums are made in float32, of float64 in float64. With `out`
    the result is written there, which autograd cannot follow. Differentiable in `x` and `weight`.

    >>> import torch
    >>> rms_norm(torch.tensor([[3.0, 4.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]]))
    tensor([[1.2000, 1.6000, 0.0000, 0.0000],
            [0.0000, 2.0000, 0.0000, 0.0000]])
    """
    if out is None and is_plain(x, x if weight is None else weight):
        return _fast_rms_norm(x, weight, eps, weight_offset)
    return _norm(rms_norm, x, weight, eps, weight_offset, out=out)


def add_rms_norm(
    x: Tensor,
    residual: Tensor,
    weight: Tensor | None = None,
    eps: float | None = None,
    weight_offset: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """Returns rms_norm(x + residual, ...) and the sum x + residual, on CUDA mostly in one pass.

    `x` and `residual` need one shape, dtype and device. Differentiable in both and in `weight`.

    >>> import torch
    >>> add_rms_norm(torch.tensor([1.0, 2.0]), torch.tensor([2.0, 2.0]), eps=0.0)
    (tensor([0.8485, 1.1314]), tensor([3., 4.]))
    """
    if is_plain(x, residual) and (weight is None or is_plain(weight, x)):
        return _fast_add_rms_norm(x, residual, weight, eps, weight_offset)  # type: ignore[no-any-return]
    return _norm.add(add_rms_norm, x, residual, weight, eps, weight_offset)


class _RmsNorm(Norm):
    """With r = 1 / sqrt(mean(x^2) + eps) for each row, and h = x * r."""

    # As torch's own, from torch 2.12 on.
    in_float32 = tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 12)

    @staticmethod
    def state(x: Tensor, number: float | None) -> Tensor:
        eps = torch.finfo(x.dtype).eps if number is None else number
        # torch.export of torch 2.15 loses the tangents of square().
        return torch.rsqrt((x * x).mean(-1, keepdim=True) + eps)

    @staticmethod
    def apply(x: Tensor, state: Tensor) -> Tensor:
        return x * state

    @staticmethod
    def gradient(grad: Tensor, x: Tensor, state: Tensor) -> Tensor:
        h = x * state
        return state * (grad - h * (grad * h).mean(-1, keepdim=True))

    @staticmethod
    def state_gradient(grad: Tensor, x: Tensor, state: Tensor) -> Tensor:
        return grad * (-(state**3) / x.shape[-1]) * x


_norm = _RmsNorm("rms_norm")
_fast_rms_norm, _fast_add_rms_norm = _norm.fast, _norm.fast_add

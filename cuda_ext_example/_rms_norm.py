"""rms_norm, which divides each row by the root of its mean square and multiplies it by a weight, and add_rms_norm,
which does the same to a sum and returns the sum too."""

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

    `weight`, with one element per column, multiplies the result; `weight_offset` is first added to it in
    float32 (Gemma's norm uses 1). `eps` is added to the mean square; its default is that of
    torch.nn.functional.rms_norm. Sums use float64 for float64 tensors and float32 for all others.
    `out` receives the result; autograd cannot follow that. Differentiable in `x` and `weight`.

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

    `x` and `residual` need the same shape, dtype and device. Differentiable in both and in `weight`.

    >>> import torch
    >>> add_rms_norm(torch.tensor([1.0, 2.0]), torch.tensor([2.0, 2.0]), eps=0.0)
    (tensor([0.8485, 1.1314]), tensor([3., 4.]))
    """
    if is_plain(x, residual) and (weight is None or is_plain(weight, x)):
        return _fast_add_rms_norm(x, residual, weight, eps, weight_offset)  # type: ignore[no-any-return]
    return _norm.add(add_rms_norm, x, residual, weight, eps, weight_offset)


class _RmsNorm(Norm):
    """The norm x * r, with the state r = 1 / sqrt(mean(x^2) + eps) of each row."""

    # torch's own rms_norm does so from torch 2.12 on.
    in_float32 = tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 12)

    @staticmethod
    def state(x: Tensor, number: float | None) -> Tensor:
        eps = torch.finfo(x.dtype).eps if number is None else number
        # Not x.square(), whose tangents torch.export of torch 2.15 loses.
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

"""RMSNorm: torch.nn.RMSNorm with this package's kernel."""

import torch
from torch import Tensor

from cuda_ext_example._rms_norm import rms_norm


class RMSNorm(torch.nn.RMSNorm):
    """torch.nn.RMSNorm, with the same arguments, parameters and state dict, computed by `rms_norm`.

    >>> norm = RMSNorm(4, eps=1e-5)
    >>> norm.load_state_dict(torch.nn.RMSNorm(4).state_dict())
    <All keys matched successfully>
    """

    def forward(self, x: Tensor) -> Tensor:
        return _norm(x, self.normalized_shape, self.weight, self.eps)


def _norm(x: Tensor, shape: tuple[int, ...], weight: Tensor | None, eps: float | None) -> Tensor:
    dims = len(shape)
    if tuple(x.shape[-dims:]) != shape:
        raise RuntimeError(
            f"RMSNorm: x must end in the dimensions {list(shape)}, not be of shape {list(x.shape)}"
        )
    if dims == 1:
        return rms_norm(x, weight, eps)
    weight = None if weight is None else weight.flatten()
    return rms_norm(x.flatten(-dims), weight, eps).view(x.shape)


torch.fx.wrap("_norm")  # traced as one call, because a proxy's shape cannot be checked

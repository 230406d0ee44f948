"""Scales the rows of matrices, alone or in a batch."""

import torch
from einops import rearrange

from ordinary import _C

__all__ = ["scale_rows"]


def scale_rows(matrices: torch.Tensor, factors: torch.Tensor) -> torch.Tensor:
    """Returns each row times its own factor; further leading dimensions are batches."""
    if matrices.dim() == 2:
        return _C.scale_rows(matrices, factors)
    batch = matrices.shape[:-2]
    rows = _C.scale_rows(rearrange(matrices, "... r c -> (... r) c"), factors.reshape(-1))
    return rows.reshape(*batch, *matrices.shape[-2:])

"""Tests what a user expects of the package, on every device there is."""

import ordinary
import pytest
import torch

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (5, 7), (4, 5, 7), (300, 1000)])
def test_rows_are_scaled(shape: tuple[int, ...], device: str) -> None:
    matrices = torch.randn(shape, device=device)
    factors = torch.randn(shape[:-1], device=device)
    torch.testing.assert_close(
        ordinary.scale_rows(matrices, factors), matrices * factors.unsqueeze(-1)
    )


def test_wrong_shapes_are_refused() -> None:
    with pytest.raises(RuntimeError, match="one element for each row"):
        ordinary.scale_rows(torch.ones(2, 2), torch.ones(3))

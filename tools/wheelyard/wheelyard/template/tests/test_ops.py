"""Every op of the list beside torch's own, and its gradients beside finite differences."""

import pytest
import torch
from my_ext._ops import OPS
from my_ext._opwright.self_test import self_test

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


@pytest.mark.parametrize("device", DEVICES)
def test_results(device: str) -> None:
    tested = self_test(device, OPS)
    assert tested.checks
    assert tested.failures == []


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
@pytest.mark.parametrize("device", DEVICES)
def test_gradients(op, device: str) -> None:
    x, y = (torch.rand(2, 5, dtype=torch.float64, device=device, requires_grad=True) for _ in "xy")
    assert torch.autograd.gradcheck(lambda x, y: op.function(*op.arguments_for(x, y)), (x, y))

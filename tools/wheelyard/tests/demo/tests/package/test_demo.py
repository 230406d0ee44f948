"""The demo project's own test."""

import demo_ext  # noqa: F401
import torch


def test_twice() -> None:
    assert torch.ops.demo_ext.twice(torch.ones(3), 2.0).tolist() == [2.0, 2.0, 2.0]

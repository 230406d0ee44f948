"""RMSNorm beside torch.nn.RMSNorm: results, gradients, state dicts, and how it is written to disk."""

import copy
import io

import pytest
import torch

from cuda_ext_example import RMSNorm

SHAPES = [
    ((3, 8), 8),
    ((2, 3, 4, 5), (4, 5)),
    ((2, 3, 4), (2, 3, 4)),
    ((0, 8), (8,)),
    ((7,), 7),
    ((2, 3, 1), 1),
]


def pair(normalized, device="cpu", **options):
    torchs = torch.nn.RMSNorm(normalized, device=device, **options)
    if torchs.weight is not None:
        torch.nn.init.normal_(torchs.weight)
    ours = RMSNorm(normalized, device=device, **options)
    ours.load_state_dict(torchs.state_dict())
    return ours, torchs


@pytest.mark.parametrize(("shape", "normalized"), SHAPES, ids=str)
@pytest.mark.parametrize("options", [{}, {"eps": 0.1}, {"elementwise_affine": False}], ids=str)
@pytest.mark.parametrize("transposed", [False, True])
def test_results_and_gradients(device, shape, normalized, options, transposed):
    ours, torchs = pair(normalized, device, dtype=torch.float64, **options)
    x = torch.randn(shape, dtype=torch.float64, device=device)
    if transposed and x.dim() > 1:
        x = x.transpose(0, 1).contiguous().transpose(0, 1)
    results = []
    for norm in (ours, torchs):
        leaf = x.detach().requires_grad_()
        out = norm(leaf)
        out.square().sum().backward()
        results.append((out, leaf.grad, *(parameter.grad for parameter in norm.parameters())))
    torch.testing.assert_close(*results)
    with torch.no_grad():
        torch.testing.assert_close(ours(x), torchs(x))


def test_state_dicts_go_both_ways():
    ours, torchs = RMSNorm((2, 4)), torch.nn.RMSNorm((2, 4))
    torch.nn.init.normal_(ours.weight)
    torchs.load_state_dict(ours.state_dict())
    assert torch.equal(ours.weight, torchs.weight)
    assert list(ours.state_dict()) == list(torchs.state_dict()) == ["weight"]
    assert repr(ours) == repr(torchs)
    assert isinstance(ours, torch.nn.RMSNorm)


def test_it_is_copied_saved_and_compiled():
    ours, torchs = pair(8)
    file = io.BytesIO()
    torch.save(ours, file)
    file.seek(0)
    x = torch.randn(3, 8)
    for norm in (
        copy.deepcopy(ours),
        torch.load(file, weights_only=False),
        torch.compile(ours, fullgraph=True, backend="aot_eager"),
        torch.export.export(ours, (x,)).module(),
        torch.fx.symbolic_trace(ours),
    ):
        torch.testing.assert_close(norm(x), torchs(x))


def test_another_shape_is_refused():
    for shape in ((3, 7), (8, 3), ()):
        with pytest.raises(RuntimeError, match=r"RMSNorm: x must end in the dimensions \[8\], not"):
            RMSNorm(8)(torch.ones(shape))

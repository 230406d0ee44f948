"""Elementwise ops of views that nobody chose."""

import pytest
import torch

from cuda_ext_example._ops import OPS
from cuda_ext_example._opwright import testing, testing_cases

hypothesis = pytest.importorskip("hypothesis", reason="needs hypothesis: pip install hypothesis")
st = hypothesis.strategies


@st.composite
def views(draw):
    """A tensor of any rank up to 4, with dimensions permuted, sliced, of size one, or expanded."""
    shape = draw(st.lists(st.integers(1, 4), max_size=4))
    tensor = torch.randn([size * 2 for size in shape])
    tensor = tensor.permute(draw(st.permutations(range(len(shape)))))
    steps = draw(st.lists(st.integers(1, 2), min_size=len(shape), max_size=len(shape)))
    return tensor[tuple(slice(None, None, step) for step in steps)]


@hypothesis.settings(max_examples=300, deadline=None)
@hypothesis.given(views(), st.data())
def test_any_two_views(a, data):
    """Every elementwise op, of views that broadcast."""
    b_shape = [
        data.draw(st.sampled_from([1, size]))
        for size in a.shape[data.draw(st.integers(0, a.dim())) :]
    ]
    b = torch.randn(b_shape)
    b = b.mT.contiguous().mT if b.dim() > 1 and data.draw(st.booleans()) else b
    for op in OPS:
        for pair in ((a, b), (b, a), (a, a)) if op.elementwise else ():
            actual, expected = testing.ours(op)(*pair), testing.torchs(op)(*pair)
            testing_cases.assert_same(op, actual, expected)
            if not op.tolerance:  # torch has the same in one op, whose strides are ours
                assert actual.stride() == expected.stride()

"""What the README says of the ops is what the list of ops says."""

import re
from pathlib import Path

import pytest

pytest.importorskip("cuda_ext_example", reason="needs `make install`", exc_type=ImportError)

from cuda_ext_example._ops import OPS

README = (Path(__file__).parents[2] / "README.md").read_text()


def test_it_lists_every_op():
    rows = re.findall(r"^\| `(\w+)\(.*\)` \|", README, re.MULTILINE)
    assert sorted(rows) == sorted(op.name for op in OPS)


def test_it_shows_the_doctors_counts():
    cells = 2 * sum(len(op.dtypes) for op in OPS)
    assert f"Self-test: {len(OPS)} ops, every dtype" in README
    assert f"{cells} of {cells} right" in README


def test_it_names_every_dtype():
    section = README[README.index("## The ops") : README.index("## The doctor")]
    for dtype in {dtype for op in OPS for dtype in op.dtypes}:
        assert dtype in section

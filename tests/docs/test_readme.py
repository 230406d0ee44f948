"""Tests that the pages agree with the list of ops."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("cuda_ext_example", reason="needs `make install`", exc_type=ImportError)

from cuda_ext_example._ops import OPS

ROOT = Path(__file__).parents[2]
FIRST_CALL = (ROOT / "docs/first-call.md").read_text()


def test_the_readme_lists_every_op():
    rows = re.findall(r"^\| `(\w+)\(.*\)` \|", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert sorted(rows) == sorted(op.name for op in OPS)


def test_the_page_of_the_ops_names_every_dtype():
    page = (ROOT / "docs/ops.md").read_text()
    for dtype in {dtype for op in OPS for dtype in op.dtypes}:
        assert dtype in page


def test_the_doctors_counts():
    cells = 2 * sum(len(op.dtypes) for op in OPS)
    assert f"Self-test: {len(OPS)} ops, every dtype" in FIRST_CALL
    assert f"{cells} of {cells} right" in FIRST_CALL


def test_the_doctors_lines():
    """The quote is from a GPU machine; here the doctor prints the same lines, except those about GPUs."""
    quote = FIRST_CALL[FIRST_CALL.index("$ python -m") : FIRST_CALL.rindex("```")]
    said = subprocess.run(
        [sys.executable, "-m", "cuda_ext_example"], capture_output=True, text=True, cwd="/"
    ).stdout
    for heading in re.findall(r"^\S.*?(?=[,:0-9]|$)", said, re.MULTILINE):
        assert heading in quote
    for label in re.findall(r"^  (\w[\w ]*?)  ", said[: said.index("\nGPUs")], re.MULTILINE):
        assert f"\n  {label}  " in quote

"""Tests results, layouts, gradients, transforms and errors of every op in the list. Add tests of a single op below."""

from pathlib import Path

from my_ext import build_info
from my_ext._ops import OPS
from my_ext._opwright.library import library_ops
from my_ext._opwright.registration import missing
from my_ext._opwright.testing import OpTests


def test_the_list_has_every_op_of_the_library_and_no_other():
    """Only what OPS lists is tested. A build without CUDA lacks the ops that only .cu files have."""
    listed = {op.name for op in OPS}
    left = set(library_ops()) - listed
    assert not left, (
        f"add {', '.join(sorted(left))} to OPS in my_ext/_ops.py, or delete the sources"
    )
    folder = Path(__file__).parents[1] / "csrc"
    cuda = (
        "" if build_info()["cuda"] else "".join(file.read_text() for file in folder.rglob("*.cu"))
    )
    absent = [name for name in listed - set(library_ops()) if f'"{name}(' not in cuda]
    assert not absent, "\n".join(missing.get(name, name) for name in absent)


class TestOps(OpTests):
    # A build without CUDA cannot test the ops that only .cu files have.
    ops = tuple(op for op in OPS if op.dtypes)

"""Tests results, layouts, gradients, transforms and errors of every op in the list. Add tests of a single op below."""

from my_ext._ops import OPS
from my_ext._opwright.testing import OpTests


class TestOps(OpTests):
    ops = OPS

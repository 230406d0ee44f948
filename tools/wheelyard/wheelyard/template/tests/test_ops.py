"""Every op of the list: results, layouts, gradients, transforms and errors. What is particular to one op goes below."""

from my_ext._ops import OPS
from my_ext._opwright.testing import OpTests


class TestOps(OpTests):
    ops = OPS

"""Every op of the list, beside torch's own."""

from demo_ext._ops import OPS
from demo_ext._opwright.testing import OpTests


class TestOps(OpTests):
    ops = OPS

"""What the built library says of itself."""

import re

import pytest

pytest.importorskip("cuda_ext_example", reason="needs `make install`", exc_type=ImportError)

import cuda_ext_example


def test_the_compiler_has_a_name_and_a_version():
    assert re.match(r"(g\+\+|.*[Cc]lang) \d+\.\d+", cuda_ext_example.build_info()["compiler"])

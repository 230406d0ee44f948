"""Tests the advice on when fewer wheels are enough, and what prevents it, from what wheelscope sees in a wheel."""

from pathlib import Path
from typing import Any

import pytest
from wheelyard.init import sources
from wheelyard.report import advice

SYMBOL = "_ZN2at4_ops10zeros_like4callERKNS_6TensorESt8optionalIN3c1010ScalarTypeEE"


def seen(python: str, torch: str, runtime: str) -> dict[str, Any]:
    """Returns the part of `wheelscope show` that the advice needs."""
    return {
        "python_abi": {"kind": python, "min": None, "because": ["PyFrame_GetBack", "PyObject_Foo"]},
        "torch_abi": {"kind": torch, "symbols": [SYMBOL, "_ZTIN5torch", "c", "d"], "unknown": []},
        "cuda": {"runtime": runtime},
    }


@pytest.mark.parametrize(
    ("facts", "strategy"),
    [
        (("none", "stable", "static"), "universal"),
        (("none", "none", "none"), "universal"),
        (("none", "stable", "shared"), "abi3"),
        (("abi3", "cxx", "shared"), "abi3"),
        (("version", "stable", "static"), "each"),
    ],
)
def test_the_smallest_strategy_follows_from_the_binaries(
    facts: tuple[str, str, str], strategy: str
) -> None:
    assert advice.smallest(seen(*facts)) == strategy


def test_what_stands_against_it_names_symbols_and_files(tmp_path: Path) -> None:
    (tmp_path / "setup.py").touch()
    (tmp_path / "ops.cpp").write_text("#include <torch/extension.h>\n")
    uses = sources.read(tmp_path).uses
    python, torch, runtime = advice.obstacles(seen("version", "cxx", "shared"), uses)
    assert python == "Python's full C API: PyFrame_GetBack, PyObject_Foo; in ops.cpp"
    assert (
        torch
        == "torch's C++ API: at::_ops::zeros_like::call, _ZTIN5torch, c and 1 more; in ops.cpp"
    )
    assert "libcudart_static.a" in runtime
    assert advice.obstacles(seen("abi3", "none", "none"), {}) == ["Python's limited API"]

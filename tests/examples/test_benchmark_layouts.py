"""The benchmark of layouts: right operands, right verdicts, a table and a plot."""

import sys
from pathlib import Path

import pytest

REASON = "needs the package with its library: `make install`"
torch = pytest.importorskip("torch", reason=REASON)
pytest.importorskip("cuda_ext_example", reason=REASON, exc_type=ImportError)
sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

import benchmark_layouts as layouts  # noqa: E402


@pytest.mark.parametrize("name", layouts.LAYOUTS)
def test_each_layout_is_what_it_says(name):
    operands = layouts.LAYOUTS[name](lambda *shape: torch.randn(shape), 128, 128)
    ours = layouts.cust_add if name.startswith("cust_add") else layouts.my_fast_add
    out = ours(*operands)
    assert torch.equal(out, torch.add(*operands))
    assert 2**13 < out.numel() <= 2**14
    dense = {"dense", "both transposed", "channels_last", "misaligned", "cust_add, dense"}
    tensors = [operand for operand in operands if isinstance(operand, torch.Tensor)]
    same = all(tensor.stride() == out.stride() for tensor in tensors)
    assert same == (name in dense)
    shifted = all(tensor.data_ptr() % 16 for tensor in tensors)
    assert shifted == (name == "misaligned")


def test_bytes_count_a_broadcast_operand_once():
    matrix, row = torch.zeros(10, 20), torch.zeros(20)
    assert layouts.bytes_moved((matrix, row), matrix) == 4 * (200 + 20 + 200)
    assert layouts.bytes_moved((matrix, 3), matrix) == 4 * 400


def row(layout, of_torch=1.0, tb_per_s=4.0):
    speeds = {"of_torch": of_torch, "tb_per_s": tb_per_s, "copy_tb_per_s": 4.2}
    us = {"torch": 100.0, "ours": 100.0}
    where = {"dtype": "float32", "layout": layout, "bytes": 1 << 30, "us": us}
    return {**where, **speeds, "fill_tb_per_s": 4.6}


def test_judges_the_promised_ratios():
    rows = [row("dense"), row("row broadcast"), row("outer", tb_per_s=4.0), row("misaligned", 0.9)]
    verdicts = {check["what"]: check["passed"] for check in layouts.judge(rows)}
    assert verdicts == {
        "dense, float32: speed / torch's own": True,
        "row broadcast, float32: speed / torch's own": True,
        "row broadcast, float32: bandwidth / copy_'s": True,
        "outer, float32: speed / torch's own": True,
        "outer, float32: bandwidth / fill_'s": False,
        "misaligned, float32: speed / torch's own": False,
        "misaligned, float32: bandwidth / dense's": True,
    }


def test_table_and_plot(tmp_path):
    rows = [row(layout) for layout in layouts.LAYOUTS]
    assert "row broadcast" in layouts.text(rows)
    pytest.importorskip("matplotlib", reason="needs matplotlib").use("Agg")
    layouts.plot(rows, "a GPU", tmp_path / "layouts.png")
    assert (tmp_path / "layouts.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
def test_without_a_gpu_it_says_so(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["benchmark_layouts.py"])
    with pytest.raises(SystemExit, match="2"):
        layouts.main()
    assert "torch sees no GPU" in capsys.readouterr().err

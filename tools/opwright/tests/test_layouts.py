"""The benchmark of layouts: right operands, right verdicts, a table and a plot."""

import sys

import pytest
from clone import NAME

torch = pytest.importorskip("torch", reason="needs torch")

from opwright.__main__ import main  # noqa: E402
from opwright.bench import layouts, measure  # noqa: E402


@pytest.mark.parametrize("name", layouts.LAYOUTS)
def test_each_layout_is_what_it_says(name):
    operands = layouts.LAYOUTS[name](lambda *shape: torch.randn(shape), 128, 128)
    out = torch.add(*operands)
    assert 2**13 < out.numel() <= 2**14
    same = all(tensor.stride() == out.stride() for tensor in operands)
    assert same == (name in {"dense", "both transposed", "channels_last", "misaligned"})
    shifted = all(tensor.data_ptr() % 16 for tensor in operands)
    assert shifted == (name == "misaligned")


def test_the_timed_op_has_every_layout_and_ops_of_one_tensor_are_dense(extension):
    found = layouts.cases(extension)
    assert [(name, op.name) for name, op, _ in found] == [
        *((layout, "scale_add") for layout in layouts.LAYOUTS),
        ("softsign, dense", "softsign"),
    ]
    with pytest.raises(SystemExit, match="demo_ext has no elementwise op of two tensors"):
        layouts.cases(measure.Extension(NAME, extension.ops[1:]))


def test_what_is_measured(extension, monkeypatch):
    """On the CPU, by a clock that counts calls; the numbers mean nothing there."""
    monkeypatch.setattr(layouts, "EXPONENT", 15)
    monkeypatch.setattr(layouts, "gpu_clock", lambda: None)
    monkeypatch.setattr(layouts, "DEVICE", "cpu")
    monkeypatch.setattr(layouts, "rounds_of", lambda _, calls, *__: [[1e-6] for _ in calls])
    rows = {row["layout"]: row for row in layouts.measure(extension, "float32", 2)}
    assert rows["dense"]["bytes"] == 3 * 4 * 2**15
    assert rows["softsign, dense"]["bytes"] == 2 * 4 * 2**15
    assert rows["row broadcast"]["bytes"] == 4 * (2 * 2**15 + 2**8)


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
def test_without_a_gpu_it_says_so(extension, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["opwright", "bench", extension.name, "--layouts"])
    assert main() == 1
    assert "torch sees no GPU; `python -m demo_ext` says why" in capsys.readouterr().err

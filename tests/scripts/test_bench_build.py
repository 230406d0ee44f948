"""The build benchmark: its report, from figures made up here, and the ops of both ways."""

import json
import re
from pathlib import Path

import pytest

from cuda_ext_example._ops import OPS
from scripts.bench_build import __main__ as bench
from scripts.bench_build import report
from scripts.bench_build.report import ROOT

NAMES = [
    *("usual", "ninja", "one-target", "jobs"),
    *("ours-cold", "ours-one-target", "ours-edit", "ours-cached", "ours-noop"),
]


def result(**seconds: float) -> dict[str, object]:
    machine = dict.fromkeys(("cores", "cpu", "nvcc", "compiler", "torch"), "some")
    rows = []
    for row in bench.ROWS:
        time = seconds.get(row.name.replace("-", "_"), 0.5)
        rows.append({"name": row.name, "what": row.what, "seconds": time, "targets": "8.0;9.0"})
        if row.name in ("usual", "ours-cold"):
            rows[-1] |= {"library_bytes": 3_000_000, "wheel_bytes": 1_500_000}
    return {"machine": machine, "rows": rows}


def test_the_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    report.write(result(usual=600, ours_cold=30, ours_edit=13), tmp_path)
    written = json.loads((tmp_path / "build.json").read_text())
    assert [row["name"] for row in written["rows"]] == NAMES
    assert written["rows"][4]["times_faster"] == 20
    assert written["promises_kept"] == {
        "ours-cold": True,
        "ours-edit": False,
        "ours-cached": True,
        "ours-noop": True,
    }
    assert "NOT KEPT: ours-edit" in capsys.readouterr().out
    assert (
        "| ours, from nothing, every target | 30.0 | 20.0 |" in (tmp_path / "build.md").read_text()
    )
    assert "| wheel | 1.50 MB | 1.50 MB |" in (tmp_path / "build.md").read_text()
    assert "600.0 s" in (tmp_path / "build.svg").read_text()


def test_the_edit_changes_code(tmp_path: Path):
    kernel = tmp_path / bench.KERNEL
    kernel.parent.mkdir(parents=True)
    kernel.write_text((ROOT / bench.KERNEL).read_text())
    bench.edit_kernel(tmp_path)
    changed = set(kernel.read_text().splitlines()) - set(
        (ROOT / bench.KERNEL).read_text().splitlines()
    )
    assert len(changed) == 1
    assert not changed.pop().lstrip().startswith("//")


def test_the_usual_way_has_the_same_ops():
    usual = (bench.USUAL / "ops.cpp").read_text()
    defined = set(re.findall(r'"(\w+)\(Tensor', usual))
    assert defined == {op.name for op in OPS} | {"rms_norm_backward"}

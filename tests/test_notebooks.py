"""Tests that the notebooks run from top to bottom, on the CPU if there is no GPU, and hold no outputs."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import cuda_ext_example
from cuda_ext_example._ops import OPS

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def cells(name):
    """Returns the code of the notebook's cells. It is plain Python, but for the line that installs the package."""
    notebook = json.loads((NOTEBOOKS / name).read_text())
    code = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    instead = r"\1raise AssertionError('the package is there')"
    return [re.sub(r"(?m)^( *)%pip .*", instead, cell) for cell in code]


def run(name, folder):
    """Runs all cells in a process of their own, with the very package that the tests use."""
    program = folder / "cells.py"
    program.write_text("\n".join(cells(name)))
    package = str(Path(cuda_ext_example.__file__).parents[1])
    return subprocess.run(
        [sys.executable, program], cwd=folder, env=os.environ | {"PYTHONPATH": package},
        capture_output=True, text=True, timeout=600,
    )  # fmt: skip


def test_the_tour(tmp_path):
    done = run("test.ipynb", tmp_path)
    assert done.returncode == 0, done.stderr
    printed = done.stdout
    assert f"torch {torch.__version__}, on {DEVICE}" in printed
    assert "tensor([0, 2, 4, 6, 8]" in printed
    assert str(2**53 + 1 + 4) in printed
    assert "tensor([[1.2000, 1.6000, 0.0000, 0.0000]]" in printed
    assert "d/drow: tensor([4., 4., 4., 0.]" in printed
    assert "my_add: a is float32 and b is float64; convert one of them" in printed
    assert "a float value cannot be added to a int64 tensor" in printed
    for name in ("add", "my_add", "my_fast_add"):
        assert re.search(rf"^{name} +\d+ us +\d+ GB/s$", printed, re.MULTILINE)
    assert re.search(r"^import torch +[\d.]+ ms  Python modules", printed, re.MULTILINE)
    assert ("not measured: torch sees no GPU" in printed) == (DEVICE == "cpu")


def test_colab_smoke(tmp_path):
    """Without a GPU it stops at once."""
    done = run("colab_smoke.ipynb", tmp_path)
    if DEVICE == "cpu":
        advice = "this runtime has no GPU. Choose Runtime > Change runtime type > GPU"
        assert (advice in done.stderr, done.stdout) == (True, "")
        return
    assert done.returncode == 0, done.stderr
    assert f"on {DEVICE}" in done.stdout
    for op in ("my_add", "my_fast_add"):
        assert f"{op} tensor([0, 2, 4, 6, 8]" in done.stdout
    for op in OPS:
        assert re.search(rf"^{op.name} tensor", done.stdout, re.MULTILINE)


def test_colab_smoke_leaves_an_older_torch_alone(monkeypatch):
    monkeypatch.setattr(torch, "__version__", "2.9.1+cu126")
    with pytest.raises(
        RuntimeError, match=r"torch 2\.9\.1\+cu126, and the wheel is for 2\.10 and newer"
    ):
        exec(cells("colab_smoke.ipynb")[0])


def test_colab_smoke_refuses_the_package_of_another_owner(monkeypatch):
    monkeypatch.setattr("importlib.metadata.version", lambda _: "0.0.2")
    with pytest.raises(RuntimeError, match="is not this project's"):
        exec(cells("colab_smoke.ipynb")[1])


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.name)
def test_committed_without_outputs(path):
    for cell in json.loads(path.read_text())["cells"]:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None

"""Tests that the notebooks run from top to bottom, on the CPU if there is no GPU, and hold no outputs."""

import re
from pathlib import Path

import pytest
import torch

import cuda_ext_example
from cuda_ext_example._ops import OPS

nbformat = pytest.importorskip("nbformat", reason="needs nbformat")
nbclient = pytest.importorskip("nbclient", reason="needs nbclient")
NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def outputs_of(name, tmp_path, monkeypatch):
    """Returns what the notebook prints, with the very package that the tests use."""
    package = str(Path(cuda_ext_example.__file__).parents[1])
    monkeypatch.setenv("PYTHONPATH", package)
    notebook = nbformat.read(NOTEBOOKS / name, as_version=4)
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=120, resources=resources).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return "".join(output["text"] for output in outputs if output["output_type"] == "stream")


def test_the_tour(tmp_path, monkeypatch):
    printed = outputs_of("test.ipynb", tmp_path, monkeypatch)
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


@pytest.mark.skipif(DEVICE == "cpu", reason="needs a GPU")
def test_colab_smoke(tmp_path, monkeypatch):
    printed = outputs_of("colab_smoke.ipynb", tmp_path, monkeypatch)
    assert f"on {DEVICE}" in printed
    assert "my_add tensor([0, 2, 4, 6, 8]" in printed
    assert "my_fast_add tensor([0, 2, 4, 6, 8]" in printed
    for op in OPS:
        assert re.search(rf"^{op.name} tensor", printed, re.MULTILINE)
    assert "pip" not in printed  # the package is there, so nothing was installed


@pytest.mark.skipif(DEVICE == "cuda", reason="needs a machine without a GPU")
def test_colab_smoke_stops_at_once_without_a_gpu(tmp_path, monkeypatch):
    with pytest.raises(nbclient.exceptions.CellExecutionError) as stopped:
        outputs_of("colab_smoke.ipynb", tmp_path, monkeypatch)
    assert "this runtime has no GPU. Choose Runtime > Change runtime type > GPU" in str(
        stopped.value
    )


def cell(name, number):
    return nbformat.read(NOTEBOOKS / name, as_version=4).cells[number].source


def test_colab_smoke_leaves_an_older_torch_alone(monkeypatch):
    monkeypatch.setattr(torch, "__version__", "2.9.1+cu126")
    with pytest.raises(
        RuntimeError, match=r"torch 2\.9\.1\+cu126, and the wheel is for 2\.10 and newer"
    ):
        exec(cell("colab_smoke.ipynb", 1))


def test_colab_smoke_refuses_the_package_of_another_owner(monkeypatch):
    monkeypatch.setattr("importlib.metadata.version", lambda _: "0.0.2")
    check = "\n".join(
        line
        for line in cell("colab_smoke.ipynb", 2).splitlines()
        if "find_spec" not in line and "%pip install" not in line
    )
    with pytest.raises(RuntimeError, match="is not this project's"):
        exec(check)


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.name)
def test_committed_without_outputs(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    for cell in notebook.cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None

"""An extension does not link against a torch that it was not built for."""

import os
from pathlib import Path

import pytest
from program import ROOT, Scope

FOLDER = Path(os.environ.get("CORPUS", ROOT / "build/corpus"))
TORCH = "torch-2.15.0-cp311-cp311-manylinux_2_28_aarch64.whl"
# Built on torch/extension.h for torch 2.9.
VISION = "torchvision-0.24.0-cp311-cp311-manylinux_2_28_aarch64.whl"


def corpus(name: str) -> Path:
    if not (FOLDER / name).exists():
        pytest.skip("the corpus is not downloaded; run `make corpus`")
    return FOLDER / name


def test_extension_of_another_torch_does_not(scope: Scope) -> None:
    report = scope("link", corpus(VISION), corpus(TORCH), code=1)["link"]
    missing = {symbol["demangled"]: symbol["expected_in"] for symbol in report["missing"]}
    assert missing["torch::autograd::deleteNode(torch::autograd::Node*)"] == "libtorch_cpu.so"

"""An extension links against the torch releases that it serves, and not against others."""

import os
from pathlib import Path

import pytest
from program import ROOT, Scope

FOLDER = Path(os.environ.get("CORPUS", ROOT / "build/corpus"))
TORCH = {
    version: f"torch-{version}-cp311-cp311-manylinux_2_28_aarch64.whl"
    for version in ("2.10.0", "2.15.0")
}
# Built on torch/extension.h for torch 2.9.
VISION = "torchvision-0.24.0-cp311-cp311-manylinux_2_28_aarch64.whl"


def corpus(name: str) -> Path:
    if not (FOLDER / name).exists():
        pytest.skip("the corpus is not downloaded; run `make corpus`")
    return FOLDER / name


@pytest.mark.parametrize("version", TORCH)
def test_our_wheel_links(scope: Scope, version: str) -> None:
    wheels = list((ROOT / "wheelhouse").glob("cuda_ext_example-*_aarch64.whl"))
    if not wheels:
        pytest.skip("no wheel of ours in wheelhouse/; run `make release`")
    report = scope("link", wheels[0], corpus(TORCH[version]))["link"]
    assert report["resolved"]["libtorch_cpu.so"] > 20


def test_extension_of_another_torch_does_not(scope: Scope) -> None:
    report = scope("link", corpus(VISION), corpus(TORCH["2.15.0"]), code=1)["link"]
    missing = {symbol["demangled"]: symbol["expected_in"] for symbol in report["missing"]}
    assert missing["torch::autograd::deleteNode(torch::autograd::Node*)"] == "libtorch_cpu.so"

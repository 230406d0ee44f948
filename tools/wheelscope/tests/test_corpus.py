"""On real wheels, wheelscope agrees with the reference tools, and healthy wheels have no error."""

import os
from pathlib import Path

import pytest
from program import ROOT, Scope

from validation.corpus import compare
from validation.corpus.download import Wheel, pip_options, read_list
from validation.corpus.outcome import explanations

FOLDER = Path(os.environ.get("CORPUS", ROOT / "build/corpus"))
WHEELS = read_list()

# Wheels with a static CUDA runtime, and the toolkit that cuobjdump finds recorded in their cubins
# (`cuobjdump -elf`, toolkit=) or, for NVIDIA's own libraries, the CUDA release they belong to.
TOOLKITS = {
    "catboost-1.2.10": "11.8",
    "cupy_cuda12x-14.2.0": "12.9",
    "cupy_cuda13x-14.2.0-cp311": "13.2",
    "nvidia_cufft-12.4.0.43": "13.4",
    "nvidia_curand_cu12-10.3.10.19": "12.9",
    "nvidia_nvshmem_cu12-3.8.0": "12.9",
    "warp_lang-1.19.0": "13.4",
    "xgboost-3.2.0": "12.9",
}


def corpus(pattern: str) -> Path:
    for path in FOLDER.glob(pattern):
        return path
    pytest.skip("the corpus is not downloaded; run `make corpus`")


@pytest.fixture(params=WHEELS, ids=[wheel.file_name for wheel in WHEELS])
def wheel(request: pytest.FixtureRequest) -> Path:
    listed: Wheel = request.param
    return corpus(listed.file_name)


def test_list_is_large_and_says_why() -> None:
    assert len({wheel.sha256 for wheel in WHEELS}) == len(WHEELS) >= 200
    assert all(wheel.purpose and len(wheel.sha256) == 64 for wheel in WHEELS)


def test_pip_is_told_the_whole_tag() -> None:
    name = "x-1.0-22-cp315-abi3.abi3t-manylinux_2_5_i686.manylinux1_i686.whl"
    requirement, options = pip_options(name)
    assert requirement == "x==1.0"
    assert {"--platform=manylinux_2_5_i686", "--platform=manylinux1_i686"} < set(options)
    assert {"--abi=abi3", "--abi=abi3t", "--implementation=cp"} < set(options)
    assert "--python-version=315" in options
    assert "--implementation=graalpy" in pip_options("x-1-graalpy312-graalpy250-any.whl")[1]


def test_says_what_the_tools_say(scope: Scope, wheel: Path) -> None:
    scope("show", wheel, code=None)
    known = explanations()
    found = compare.compared(wheel).differences
    assert not [one for one in found if not any(entry.covers(one) for entry in known)]


@pytest.mark.parametrize(("start", "toolkit"), TOOLKITS.items())
def test_version_of_a_static_runtime(scope: Scope, start: str, toolkit: str) -> None:
    (item,) = scope("show", corpus(f"{start}-*.whl"), code=None)["items"]
    assert item["cuda"]["runtime"] == "static"
    assert item["cuda"]["runtime_version"] == toolkit
    assert any("returns CUDA" in sentence for sentence in item["cuda"]["evidence"])


def test_an_extension_does_not_link_against_another_torch(scope: Scope) -> None:
    tag = "cp311-cp311-manylinux_2_28_aarch64"
    vision = corpus(f"torchvision-0.24.0-{tag}.whl")  # built on torch/extension.h for torch 2.9
    report = scope("link", vision, corpus(f"torch-2.15.0-{tag}.whl"), code=1)["link"]
    missing = {symbol["demangled"]: symbol["expected_in"] for symbol in report["missing"]}
    assert missing["torch::autograd::deleteNode(torch::autograd::Node*)"] == "libtorch_cpu.so"

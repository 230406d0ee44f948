"""On real wheels, wheelscope says what the reference tools say, and healthy ones have no error."""

import json
import os
from pathlib import Path

import jsonschema
import pytest
from program import ROOT, Scope

from validation.corpus import compare
from validation.corpus.download import Wheel, pip_options, read_list
from validation.corpus.explained import explanations

FOLDER = Path(os.environ.get("CORPUS", ROOT / "build/corpus"))
SCHEMA = json.loads((ROOT / "schema.json").read_text())
WHEELS = read_list()

# What the list must have a wheel of, as its file name shows it.
KINDS = [
    *("x86_64", "aarch64", "i686", "armv7l", "ppc64le", "s390x", "riscv64", "wasm32"),
    *("manylinux1_", "manylinux2010_", "manylinux2014_", "manylinux_2_28_", "manylinux_2_39_"),
    *("musllinux_1_1_x86_64", "musllinux_1_2_aarch64", "musllinux_1_2_s390x", "macosx", "win_"),
    *("-abi3-", "abi3t", "cp313t", "cp314t", "cp315t", "pp311", "graalpy312", "py3-none-any"),
    *(
        "torch-",
        "vllm-",
        "sgl_kernel-",
        "sglang_kernel-",
        "flashinfer_cubin-",
        "triton-",
        "jaxlib-",
    ),
    *("tensorflow-", "cupy_cuda11x-", "cupy_cuda12x-", "cupy_cuda13x-", "onnxruntime_gpu-"),
    *("onnxruntime_qnn-", "amd_aiter-", "dpctl-", "nvidia_dali_cuda130-", "nvidia_cublas-"),
]

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


@pytest.fixture(params=WHEELS, ids=[wheel.file_name for wheel in WHEELS])
def wheel(request: pytest.FixtureRequest) -> Path:
    listed: Wheel = request.param
    path = FOLDER / listed.file_name
    if not path.exists():
        pytest.skip("the corpus is not downloaded; run `make corpus`")
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_list_has_one_of(kind: str) -> None:
    assert any(kind in wheel.file_name for wheel in WHEELS)


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
    jsonschema.validate(scope("show", wheel, code=None), SCHEMA)
    known = explanations()
    found = compare.compared(wheel).differences
    assert not [one for one in found if not any(entry.covers(one) for entry in known)]


@pytest.mark.parametrize(("start", "toolkit"), TOOLKITS.items())
def test_version_of_a_static_runtime(scope: Scope, start: str, toolkit: str) -> None:
    paths = list(FOLDER.glob(f"{start}-*.whl"))
    if not paths:
        pytest.skip("the corpus is not downloaded; run `make corpus`")
    (item,) = scope("show", paths[0], code=None)["items"]
    assert item["cuda"]["runtime"] == "static"
    assert item["cuda"]["runtime_version"] == toolkit
    assert any("returns CUDA" in sentence for sentence in item["cuda"]["evidence"])

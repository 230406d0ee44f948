"""On real wheels, wheelscope says what auditwheel, cuobjdump and torch-abi-audit say."""

import json
import os
from pathlib import Path

import jsonschema
import pytest
from program import ROOT, Scope

from scripts.corpus import compare
from scripts.corpus.download import Wheel, read_list

FOLDER = Path(os.environ.get("CORPUS", ROOT / "build/corpus"))
SCHEMA = json.loads((ROOT / "csrc/wheelscope/schema.json").read_text())
WHEELS = read_list()

# Wheels with a static CUDA runtime, and the toolkit that cuobjdump finds recorded in their cubins
# (`cuobjdump -elf`, toolkit=) or, for NVIDIA's own libraries, the CUDA release they belong to.
TOOLKITS = {
    "catboost-1.2.10": "11.8",
    "cupy_cuda12x-14.2.0": "12.9",
    "cupy_cuda13x-14.2.0": "13.2",
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


def test_list_is_large_and_varied() -> None:
    names = " ".join(wheel.file_name for wheel in WHEELS)
    assert len(WHEELS) >= 25
    assert all(kind in names for kind in ("x86_64", "aarch64", "abi3", "musllinux", "none-any"))


def test_says_what_the_tools_say(scope: Scope, wheel: Path) -> None:
    jsonschema.validate(scope("show", wheel, code=None), SCHEMA)
    unexplained = [d for d in compare.differences(wheel) if not compare.is_explained(d)]
    assert not unexplained


@pytest.mark.parametrize(("start", "toolkit"), TOOLKITS.items())
def test_version_of_a_static_runtime(scope: Scope, start: str, toolkit: str) -> None:
    paths = list(FOLDER.glob(f"{start}-*.whl"))
    if not paths:
        pytest.skip("the corpus is not downloaded; run `make corpus`")
    (item,) = scope("show", paths[0], code=None)["items"]
    assert item["cuda"]["runtime"] == "static"
    assert item["cuda"]["runtime_version"] == toolkit
    assert any("returns CUDA" in sentence for sentence in item["cuda"]["evidence"])


def test_every_explanation_is_still_needed() -> None:
    paths = {entry["wheel"]: FOLDER / entry["wheel"] for entry in compare.explained()}
    if not all(path.exists() for path in paths.values()):
        pytest.skip("the corpus is not downloaded; run `make corpus`")
    found = [d for path in paths.values() for d in compare.differences(path)]
    for entry in compare.explained():
        assert any(d.items() <= entry.items() for d in found), f"no longer so: {entry}"

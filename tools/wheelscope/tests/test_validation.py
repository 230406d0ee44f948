"""The committed tables agree with their sources as of today and with each other, and answers on real
wheels with what is known of them. `make corpus-compare` asks the reference tools."""

import json
import os
import tomllib
from pathlib import Path
from typing import Any

import pytest
from program import ROOT, scope
from torch_abi_audit.torch_versions import stable_shim_versions

from validation import tables
from validation.trials import outcome

# --- Tables -----------------------------------------------------------------------------------------
DATA = ROOT / "src/data"


def test_policies_are_those_of_the_installed_auditwheel(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setattr(tables, "DATA", tmp_path)
    tables.write_manylinux([])
    assert (tmp_path / "manylinux.csv").read_text() == (DATA / "manylinux.csv").read_text()


def test_torch_functions_agree_with_torch_abi_audit() -> None:
    """Ours are read from torch's binaries, theirs from its sources."""
    ours = {name: version for name, version, _ in tables.read_csv("torch_shims.csv")}
    theirs = {name: f"{v[0]}.{v[1]}" for name, v in stable_shim_versions().items()}
    both = ours.keys() & theirs.keys()
    assert len(both) > 500
    assert {name: ours[name] for name in both} == {name: theirs[name] for name in both}


def test_runtimes_are_in_order_and_each_has_markers() -> None:
    minors = json.loads((DATA / "cudart.json").read_text())["minors"]
    versions = [tables.by_version(minor["version"]) for minor in minors]
    assert versions == sorted(versions)
    markers = [marker for minor in minors for marker in minor["markers"]]
    assert all(minor["markers"] for minor in minors)
    assert len(markers) == len(set(markers))


def test_drivers_and_gpus_hold_together() -> None:
    table = tomllib.loads((DATA / "cuda.toml").read_text())
    toolkits = table["toolkits"]
    for fact in ("driver", "ptx"):
        column = [tables.by_version(entry[fact]) for entry in toolkits.values()]
        assert column == sorted(column), f"a newer toolkit has an older {fact}"
    for major, driver in table["drivers"].items():
        first = tables.by_version(toolkits[f"{major}.0"]["driver"])
        assert tables.by_version(driver)[0] == first[0], (
            f"CUDA {major} starts with its first driver"
        )
    capabilities = [tables.by_version(gpu["capability"]) for gpu in table["gpu"]]
    assert capabilities == sorted(capabilities)
    assert {"name", "family", "toolkit"} <= set.intersection(*(set(gpu) for gpu in table["gpu"]))


# --- Real wheels ------------------------------------------------------------------------------------
FOLDER = Path(os.environ.get("CORPUS", ROOT / "build/corpus"))

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


@pytest.mark.parametrize(("start", "toolkit"), TOOLKITS.items())
def test_version_of_a_static_runtime(start: str, toolkit: str) -> None:
    (item,) = scope("show", corpus(f"{start}-*.whl"), code=None)["items"]
    assert item["cuda"]["runtime"] == "static"
    assert item["cuda"]["runtime_version"] == toolkit
    assert any("returns CUDA" in sentence for sentence in item["cuda"]["evidence"])


def test_an_extension_does_not_link_against_another_torch() -> None:
    tag = "cp311-cp311-manylinux_2_28_aarch64"
    vision = corpus(f"torchvision-0.24.0-{tag}.whl")  # built on torch/extension.h for torch 2.9
    report = scope("link", vision, corpus(f"torch-2.15.0-{tag}.whl"), code=1)["link"]
    missing = {symbol["demangled"]: symbol["expected_in"] for symbol in report["missing"]}
    assert missing["torch::autograd::deleteNode(torch::autograd::Node*)"] == "libtorch_cpu.so"


def test_a_distribution_is_imported_by_the_names_below_the_folders_of_its_pth_files() -> None:
    files = ["a.pth", "b/c/d/__init__.py", "b/c/d/e/__init__.py", "f/g.py", "h.py", "i.so"]
    assert outcome.names_of(files, []) == {"b.c.d", "h", "i"}
    assert outcome.names_of(files, ["b/c"]) == {"d", "h", "i"}

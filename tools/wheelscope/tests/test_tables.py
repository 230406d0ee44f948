"""The committed tables agree with their sources as of today, and with each other."""

import json
import tomllib
from typing import Any

import pytest
from program import ROOT
from torch_abi_audit.torch_versions import stable_shim_versions

from validation.tables import layout, manylinux
from validation.tables.layout import by_version

DATA = ROOT / "src/data"


def test_policies_are_those_of_the_installed_auditwheel(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setattr(layout, "DATA", tmp_path)
    manylinux.main()
    assert (tmp_path / "manylinux.csv").read_text() == (DATA / "manylinux.csv").read_text()


def test_torch_functions_agree_with_torch_abi_audit() -> None:
    """Ours are read from torch's binaries, theirs from its sources."""
    ours = {name: version for name, version, _ in layout.read_csv("torch_shims.csv")}
    theirs = {name: f"{v[0]}.{v[1]}" for name, v in stable_shim_versions().items()}
    both = ours.keys() & theirs.keys()
    assert len(both) > 500
    assert {name: ours[name] for name in both} == {name: theirs[name] for name in both}


def test_runtimes_are_in_order_and_each_has_markers() -> None:
    minors = json.loads((DATA / "cudart.json").read_text())["minors"]
    versions = [by_version(minor["version"]) for minor in minors]
    assert versions == sorted(versions)
    markers = [marker for minor in minors for marker in minor["markers"]]
    assert all(minor["markers"] for minor in minors)
    assert len(markers) == len(set(markers))


def test_drivers_and_gpus_hold_together() -> None:
    table = tomllib.loads((DATA / "cuda.toml").read_text())
    toolkits = table["toolkits"]
    for fact in ("driver", "ptx"):
        column = [by_version(entry[fact]) for entry in toolkits.values()]
        assert column == sorted(column), f"a newer toolkit has an older {fact}"
    for major, driver in table["drivers"].items():
        first = by_version(toolkits[f"{major}.0"]["driver"])
        assert by_version(driver)[0] == first[0], f"CUDA {major} starts with its first driver"
    capabilities = [by_version(gpu["capability"]) for gpu in table["gpu"]]
    assert capabilities == sorted(capabilities)
    assert {"name", "family", "toolkit"} <= set.intersection(*(set(gpu) for gpu in table["gpu"]))

"""Tests that our release policy agrees with the matrix."""

import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent


def read(name: str) -> dict[str, Any]:
    return tomllib.loads((ROOT / "ci" / name).read_text())


def test_targets_and_torch_are_those_of_the_matrix() -> None:
    matrix, policy = read("matrix.toml"), read("policy.toml")
    universal = matrix["strategy"]["universal"]
    toolkit = matrix["toolkit"][universal["toolkit"]]
    targets = [target.removesuffix("+PTX").replace(".", "") for target in toolkit["targets"]]
    assert policy["cuda"]["sass"] == targets
    assert policy["cuda"]["ptx"] == any(target.endswith("+PTX") for target in toolkit["targets"])
    assert policy["torch"]["min"] == universal["torch"]

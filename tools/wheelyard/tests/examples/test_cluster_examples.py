"""Tests the Kubernetes manifest without a cluster: against its schema, and by parsing its commands."""

import sys
from pathlib import Path

import kubernetes_validate
import pytest
import yaml
from wheelyard import arguments

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
MANIFEST = list(yaml.safe_load_all((EXAMPLES / "kubernetes.yaml").read_text()))


def parsed(words: list[str], monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """Returns how wheelyard parses a command line."""
    monkeypatch.setattr(sys, "argv", words)
    return vars(arguments.parse())


@pytest.mark.parametrize(
    "part", MANIFEST, ids=lambda part: f"{part['kind']}-{part['metadata']['name']}"
)
def test_the_manifest_is_valid(part: dict[str, object]) -> None:
    kubernetes_validate.validate(part, "1.37", strict=True)


def test_the_manifests_commands_are_wheelyards(monkeypatch: pytest.MonkeyPatch) -> None:
    specs = [p["spec"]["template"]["spec"] for p in MANIFEST if p["kind"] == "Deployment"]
    commands = [c["args"] for s in specs for c in s["containers"] if c["args"][0] == "wheelyard"]
    found = [parsed(words, monkeypatch) for words in commands]
    assert [given["command"] for given in found] == ["scheduler", "worker"]
    assert {given["keys"] for given in found} == {Path("/keys")}

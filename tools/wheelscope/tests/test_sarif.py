"""`check --sarif` prints valid SARIF, and findings become annotations when GitHub runs it."""

import json
import os
import zipfile
from pathlib import Path

import pytest
from program import run

pytestmark = pytest.mark.usefixtures("scope")


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """Makes a wheel with a faulty name, and a member whose name has a line end."""
    path = tmp_path / "broken-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a\n::error::forged", b"")
    return path


def test_sarif(broken: Path) -> None:
    [found] = json.loads(run("check", "--sarif", broken, code=1).stdout)["runs"]
    rules = [rule["id"] for rule in found["tool"]["driver"]["rules"]]
    assert "record-missing" in rules
    for result in found["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]
        assert result["level"] in ("note", "warning", "error")
        [place] = result["locations"]
        assert place["physicalLocation"]["artifactLocation"]["uri"] == str(broken)


def test_annotations(broken: Path) -> None:
    elsewhere = {name: value for name, value in os.environ.items() if name != "GITHUB_ACTIONS"}
    assert "::error" not in run("check", broken, code=1, env=elsewhere).stderr
    on_github = {**elsewhere, "GITHUB_ACTIONS": "true"}
    lines = run("check", broken, code=1, env=on_github).stderr.splitlines()
    assert any(line.startswith("::error title=wheelscope record-missing") for line in lines)
    assert not any(line.startswith("::error::forged") for line in lines)

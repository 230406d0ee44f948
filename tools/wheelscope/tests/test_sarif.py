"""`check --sarif` is SARIF, and findings are annotations where GitHub runs it."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from program import PROGRAM

pytestmark = pytest.mark.usefixtures("scope")


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """A wheel whose name has a fault, and whose member has a name with a line end."""
    import zipfile

    path = tmp_path / "broken-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a\n::error::forged", b"")
    return path


def check(wheel: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    settings = {name: value for name, value in os.environ.items() if name != "GITHUB_ACTIONS"}
    return subprocess.run(
        [PROGRAM, "check", *words, wheel],
        capture_output=True,
        text=True,
        env={**settings, **environment},
    )


def test_sarif(broken: Path) -> None:
    done = check(broken, "--sarif")
    assert done.returncode == 1
    [run] = json.loads(done.stdout)["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert "record-missing" in rules
    for result in run["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]
        assert result["level"] in ("note", "warning", "error")
        [place] = result["locations"]
        assert place["physicalLocation"]["artifactLocation"]["uri"] == str(broken)


def test_annotations(broken: Path) -> None:
    assert "::error" not in check(broken).stderr
    lines = check(broken, GITHUB_ACTIONS="true").stderr.splitlines()
    assert any(line.startswith("::error title=wheelscope record-missing") for line in lines)
    assert not any(line.startswith("::error::forged") for line in lines)

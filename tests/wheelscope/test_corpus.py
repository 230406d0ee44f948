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


def test_every_explanation_is_still_needed() -> None:
    paths = {entry["wheel"]: FOLDER / entry["wheel"] for entry in compare.explained()}
    if not all(path.exists() for path in paths.values()):
        pytest.skip("the corpus is not downloaded; run `make corpus`")
    found = [d for path in paths.values() for d in compare.differences(path)]
    for entry in compare.explained():
        assert any(d.items() <= entry.items() for d in found), f"no longer so: {entry}"

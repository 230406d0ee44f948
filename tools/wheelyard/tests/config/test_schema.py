"""Tests the schemas: editors get the rules that the reader enforces, and the reference page is made from them."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator
from repository import ROOT
from wheelyard.config import matrix, policy, reference
from wheelyard.problem import Problem

FILES: dict[str, Any] = {"matrix": matrix, "policy": policy}
KINDS: dict[str, Any] = {"matrix": matrix.Matrix, "policy": policy.Policy}


def validator(name: str) -> Draft7Validator:
    schema = reference.json_schema(KINDS[name], FILES[name].FILE)
    Draft7Validator.check_schema(schema)
    return Draft7Validator(schema)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("folder", [".", "tools/wheelyard/tests/demo"])
def test_our_files_are_valid(name: str, folder: str) -> None:
    tables = tomllib.loads((ROOT / folder / FILES[name].FILE).read_text())
    assert list(validator(name).iter_errors(tables)) == []


WRONG = {
    "an unknown key": "[build]\nenviroment = {}\n",
    "a wrong type": "[build]\nbefore = 3\n",
    "a wrong choice": '[strategy]\ndefault = "all"\n',
    "a list that is none": '[verify]\ntests = "tests"\n',
}


@pytest.mark.parametrize("what", WRONG)
def test_schema_and_reader_refuse_the_same(what: str, tmp_path: Path) -> None:
    text = '[arch.x86_64]\n[torch."2.15"]\n' + WRONG[what]
    file = tmp_path / "matrix.toml"
    file.write_text(text)
    assert list(validator("matrix").iter_errors(tomllib.loads(text)))
    with pytest.raises(Problem, match=r"matrix\.toml:\d+: "):
        matrix.load(file)


def test_the_page_tells_a_list_of_tables_from_a_table() -> None:
    page = reference.page(KINDS["matrix"], FILES["matrix"].FILE)
    assert "## `[[verify.run]]`\n" in page
    assert "## `[verify]`\n" in page


def test_the_policy_has_every_key_that_wheelscope_takes() -> None:
    """wheelscope refuses unknown keys, so a policy with all of ours must pass."""
    done = subprocess.run(
        [sys.executable, "-m", "wheelyard", "schema", "policy"], capture_output=True, text=True
    )
    known = json.loads(done.stdout)["properties"]
    source = "".join(
        file.read_text() for file in (ROOT / "tools/wheelscope/src").rglob("policy_file.cc")
    )
    for table, facts in known.items():
        for key in facts.get("properties", {}):
            assert f'"{table}.{key}"' in source, f"wheelscope knows no {table}.{key}"
    assert source.count("reader.take(") == sum(len(f.get("properties", {})) for f in known.values())

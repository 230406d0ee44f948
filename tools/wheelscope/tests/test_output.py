"""Every --json output is valid under the schema, and the schema rejects what it should. `check --sarif`
prints valid SARIF, and findings become annotations when GitHub runs it."""

import copy
import json
import os
import subprocess
import sysconfig
import zipfile
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import sample_wheels
from fixture_elf import Code, fatbin
from program import ROOT, VALIDATOR, run, scope

MODULE = next(Path(sysconfig.get_path("purelib")).glob("numpy/_core/_multiarray_umath*.so"))
LIBC = next(Path("/lib").glob("*-linux-gnu/libc.so.6"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Makes a small wheel: a compiled module of NumPy's with device code added to it."""
    folder = tmp_path_factory.mktemp("wheel")
    code, module = folder / "code.fatbin", folder / "module.so"
    code.write_bytes(fatbin([Code("ptx", 90, b".version 8.0\n.target sm_90\n")]))
    subprocess.run(["objcopy", "--add-section", f".nv_fatbin={code}", MODULE, module], check=True)
    path = folder / "sample-1.0-py3-none-manylinux_2_28_x86_64.whl"
    path.write_bytes(sample_wheels.wheel(path.name, {"sample/module.so": module.read_bytes()}))
    return path


def test_schema_is_itself_valid() -> None:
    jsonschema.Draft202012Validator.check_schema(VALIDATOR.schema)


# Each command that reads files, its exit code, and a path that its answer must have, so that it is
# not empty.
COMMANDS: dict[str, tuple[list[str | Path], int, list[Any]]] = {
    "show": (["{}", MODULE, LIBC], 0, ["items", 0, "cuda", "ptx"]),
    "check": (["--policy", ROOT / "policy.toml", "{}"], 1, ["items", 0, "findings"]),
    "dump": (["--symbols", "{}"], 0, ["items", 0, "symbols"]),
    "cover": (["--matrix", ROOT / "tests/matrix.toml", "{}"], 1, ["cells"]),
    "link": (["{}", LIBC], 1, ["link", "missing"]),  # its BLAS library is not there
    "diff": (["{}", MODULE], 1, ["changes"]),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_printed_is_valid(wheel: Path, command: str) -> None:
    words, code, path = COMMANDS[command]
    place = scope(command, *(str(word).format(wheel) for word in words), code=code)
    for step in path:
        place = place[step]
    assert place


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["schema_version"], 3),
        (["surprise"], True),
        (["items", 0, "torch_abi", "kind"], "unstable"),
        (["items", 0, "cuda", "sass"], ["sm_75"]),
        (["items", 0, "cuda", "runtime_version"], "unknown"),
        (["items", 0, "elf", 0, "hardening", "relro"], None),
    ],
)
def test_schema_refuses(wheel: Path, path: list[Any], value: Any) -> None:
    output = copy.deepcopy(scope("show", wheel))
    place = output
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(output)


# --- SARIF, and annotations -------------------------------------------------------------------------


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


def test_the_spelling_of_a_requirement_is_no_change(tmp_path: Path) -> None:
    spellings = ["numpy (<3,>=1) ; extra == 'a'", 'NumPy>=1, <3; extra=="a"', "numpy>=1"]
    wheels = []
    for i, text in enumerate(spellings):
        wheels.append(tmp_path / f"sample-{i}-py3-none-any.whl")
        wheels[-1].write_bytes(sample_wheels.wheel(wheels[-1].name, {}, f"Requires-Dist: {text}\n"))
    for other, changes in ((wheels[1], False), (wheels[2], True)):
        found = scope("diff", wheels[0], other, code=1)["changes"]
        assert ("requires" in [one["subject"] for one in found]) == changes

"""Sets of versions in packse's scenarios, which uv's resolver is tested with, get the same answers.

Scenarios for several platforms at once, and those about building from sources, are left out.
"""

import json
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import package_index
import pytest
from packaging import tags
from packaging.utils import canonicalize_name
from program import PROGRAM, Scope
from sample_wheels import wheel
from test_peers import files_of

# Scenarios whose answer differs on purpose.
DIFFERENCES = {
    "python-less-than-current": "uv ignores upper bounds of Requires-Python, pip keeps to them"
}


def scenarios() -> dict[str, dict[str, Any]]:
    found = {}
    for path in sorted((files_of("packse") / "scenarios").rglob("*.toml")):
        scenario = tomllib.loads(path.read_text())
        options = scenario.get("resolver_options", {})
        if not options.keys() & {"universal", "no_binary", "no_build", "required_environments"}:
            found[scenario["name"]] = scenario
    return found


def files(name: str, version: str, facts: dict[str, Any]) -> dict[str, bytes]:
    """Returns the files of a version by name; of sources, only the name matters."""
    lines = [f"Requires-Dist: {one}" for one in facts.get("requires", [])]
    if python := facts.get("requires_python"):
        lines.append(f"Requires-Python: {python}")
    for extra, required in facts.get("extras", {}).items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f"Requires-Dist: {one} ; extra == '{extra}'" for one in required]
    stem = f"{name.replace('-', '_')}-{version}"
    names = []
    if facts.get("wheel", True):
        names = [f"{stem}-{tag}.whl" for tag in facts.get("wheel_tags") or ["py3-none-any"]]
    metadata = "\n".join([*lines, ""])
    found = {one: wheel(one, {"package.py": b""}, metadata) for one in names}
    if facts.get("sdist", True):
        found[f"{stem}.tar.gz"] = b"sources"
    return found


def machine_of(scenario: dict[str, Any], base: dict[str, Any], folder: Path) -> Path:
    """Saves this machine with the scenario's Python."""
    options = scenario.get("resolver_options", {})
    version = options.get("python") or scenario.get("environment", {}).get("python", "3.12")
    minor = tuple(int(part) for part in version.split(".")[:2])
    platforms = [f"manylinux_2_{n}_x86_64" for n in range(17, 4, -1)] + ["linux_x86_64"]
    if "python_platform" in options:
        platforms.insert(0, "manylinux2014_x86_64")
    found = [*tags.cpython_tags(minor, platforms=platforms)]
    found += tags.compatible_tags(minor, f"cp{minor[0]}{minor[1]}", platforms)
    python = {
        **base["machine"]["python"],
        "version": version if version.count(".") == 2 else version + ".0",
        "abi": f"cp{minor[0]}{minor[1]}",
        "tags": [str(tag) for tag in found],
    }
    path = folder / "machine.json"
    facts = {**base["machine"], "architecture": "x86_64", "python": python, "torch": None}
    path.write_text(json.dumps({**base, "machine": facts}))
    return path


@pytest.fixture(scope="module")
def here(scope: Scope) -> dict[str, Any]:
    return scope("machine")  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", scenarios())
def test_scenario(name: str, here: dict[str, Any], tmp_path: Path) -> None:
    scenario = scenarios()[name]
    with package_index.serve() as index:
        for package, facts in scenario["packages"].items():
            index.page(canonicalize_name(package), [])
            for version, one in facts["versions"].items():
                told = {"requires-python": one.get("requires_python"), "yanked": one.get("yanked")}
                for file, body in files(package, version, one).items():
                    index.add(file, body, **{key: said for key, said in told.items() if said})
        words = [PROGRAM, "fit", "--format", "set", "--json", "--index", index.simple]
        words += ["--machine", machine_of(scenario, here, tmp_path)]
        if scenario.get("resolver_options", {}).get("prereleases"):
            words.append("--pre")
        done = subprocess.run(
            [*map(str, words), *scenario["root"]["requires"]],
            capture_output=True,
            text=True,
            env={"HOME": str(tmp_path), "NO_PROXY": "127.0.0.1"},
        )
    assert done.returncode in (0, 1, 3), done.stderr  # 3: a project is not there
    answer = json.loads(done.stdout)["fit_set"]
    expected = scenario["expected"]
    found = {one["name"]: one["version"] for one in answer["packages"]}
    same = answer["found"] == expected["satisfiable"] and (
        not answer["found"] or found == expected.get("packages", found)
    )
    said = {**expected, "found": found, "conflict": [one["text"] for one in answer["conflict"]]}
    assert same != (name in DIFFERENCES), said

"""Sets of versions in packse's scenarios, which uv's resolver is tested with, get the same answers.

Scenarios for several platforms at once, and those about building from sources, are left out.
"""

import json
import tomllib
from pathlib import Path
from typing import Any

import package_index
import pytest
from packaging.utils import canonicalize_name
from program import Fit
from sample_wheels import wheel
from test_peers import files_of

from validation.program import machine, python

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


def machine_of(scenario: dict[str, Any], folder: Path) -> Path:
    """Saves a machine with the scenario's Python."""
    options = scenario.get("resolver_options", {})
    version = options.get("python") or scenario.get("environment", {}).get("python", "3.12")
    platforms = [f"manylinux_2_{n}_x86_64" for n in range(17, 4, -1)] + ["linux_x86_64"]
    if "python_platform" in options:
        platforms.insert(0, "manylinux2014_x86_64")
    exact = version if version.count(".") == 2 else version + ".0"
    path = folder / "machine.json"
    path.write_text(json.dumps(machine(python=python(exact, platforms))))
    return path


@pytest.mark.parametrize("name", scenarios())
def test_scenario(bare_fit: Fit, name: str, tmp_path: Path) -> None:
    scenario = scenarios()[name]
    with package_index.serve() as index:
        for package, facts in scenario["packages"].items():
            index.page(canonicalize_name(package), [])
            for version, one in facts["versions"].items():
                told = {"requires-python": one.get("requires_python"), "yanked": one.get("yanked")}
                for file, body in files(package, version, one).items():
                    index.add(file, body, **{key: said for key, said in told.items() if said})
        words = ["--format", "set", "--index", index.simple]
        words += ["--machine", machine_of(scenario, tmp_path)]
        if scenario.get("resolver_options", {}).get("prereleases"):
            words.append("--pre")
        answer, _, _ = bare_fit(*words, *scenario["root"]["requires"])
    expected = scenario["expected"]
    found = {one["name"]: one["version"] for one in answer["packages"]}
    same = answer["found"] == expected["satisfiable"] and (
        not answer["found"] or found == expected.get("packages", found)
    )
    said = {**expected, "found": found, "conflict": [one["text"] for one in answer["conflict"]]}
    assert same != (name in DIFFERENCES), said

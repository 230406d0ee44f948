"""Tests the SBOM in a wheel: it is valid CycloneDX, names what is linked in, is reproducible, and agrees with
RECORD."""

import hashlib
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from demo_wheel import make_wheel
from repository import TOOL
from wheelyard.core.digest import sha256
from wheelyard.problem import Problem
from wheelyard.tools import sbom, wheelscope

PINNED = sbom.pinned_runtime("12.9")


def facts(runtime: str = "static", version: str | None = "12.9") -> dict[str, Any]:
    """Returns the part of `wheelscope show` that an SBOM needs."""
    about = {"name": "demo_ext", "version": "1.0", "license": "BSD-3-Clause"}
    return {"wheel": about, "cuda": {"runtime": runtime, "runtime_version": version}}


def test_it_is_valid_and_names_the_static_runtime_as_the_lock_pins_it() -> None:
    made = sbom.document(facts(), PINNED)
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(json.dumps(made)) is None
    (runtime,) = made["components"]
    lock = (TOOL / "wheelyard/docker/toolkits/12.9.lock").read_text()
    assert f"{runtime['name']}=={runtime['version']} " in lock
    assert "linked statically" in runtime["description"]
    assert made["dependencies"][0]["dependsOn"] == [runtime["purl"]]


def test_it_names_the_static_runtime_of_a_toolkit_whose_own_runtime_is_shared_only() -> None:
    assert sbom.pinned_runtime("12.4") == PINNED
    assert sbom.pinned_runtime("13.0") != PINNED


def test_without_a_static_runtime_it_names_none() -> None:
    made = sbom.document(facts("none", None), PINNED)
    assert made["components"] == []
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(json.dumps(made)) is None


def test_it_names_the_libraries_that_were_copied_into_the_wheel(tmp_path: Path) -> None:
    library = "demo_ext.libs/libyaml-0-8ec1a697.so.2.0.9"
    wheel = make_wheel(tmp_path, beside=(library, "demo_ext/libown.so", "demo_ext.libs/LICENSE"))
    made = sbom.document(facts(), PINNED, sbom.grafted(wheel))
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(json.dumps(made)) is None
    _, copied = made["components"]
    assert copied["name"] == "libyaml-0.so.2.0.9"
    assert copied["hashes"][0]["content"] == hashlib.sha256(b"anything").hexdigest()
    assert library in made["dependencies"][0]["dependsOn"]
    sbom.add(wheel, made, 0)
    assert sbom.linked_in(wheel)[1:] == ["libyaml-0.so.2.0.9"]


def test_it_names_what_the_build_was_given() -> None:
    files = {"fmt.tgz": ["https://host.example/fmt.tgz", "0" * 64]}
    made = sbom.document(facts("none", None), PINNED, sbom.downloaded(files))
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(json.dumps(made)) is None
    (given,) = made["components"]
    assert (given["name"], given["hashes"][0]["content"]) == ("fmt.tgz", "0" * 64)
    assert given["externalReferences"][0]["url"] == "https://host.example/fmt.tgz"


def test_a_runtime_that_is_not_the_pinned_one_is_refused() -> None:
    with pytest.raises(Problem, match=r"has CUDA runtime 12\.8, but its toolkit pins 12\.9\."):
        sbom.document(facts(version="12.8"), PINNED)
    with pytest.raises(Problem, match="its toolkit's lock file pins none"):
        sbom.document(facts(), None)


def test_the_wheel_holds_it_and_its_record_agrees(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path)
    before = dict(members(wheel))
    sbom.add(wheel, sbom.document(facts(), PINNED), 0)
    after = dict(members(wheel))
    (name,) = after.keys() - before.keys()
    assert re.fullmatch(r"demo_ext-.*\.dist-info/sboms/cyclonedx\.json", name)
    assert all(after[n] == data for n, data in before.items() if not n.endswith("RECORD"))
    looked = wheelscope.show(wheel)
    assert not [f for f in looked["findings"] if "RECORD" in str(f)]
    assert looked["wheel"]["record_verified"] == len([n for n in after if n[-1] != "/"]) - 1
    assert json.loads(sbom.extract(wheel, tmp_path).read_text())["bomFormat"] == "CycloneDX"


def test_the_same_wheel_gets_the_same_bytes_and_twice_is_once(tmp_path: Path) -> None:
    wheels = [make_wheel(tmp_path / folder) for folder in "ab"]
    for wheel in wheels:
        sbom.add(wheel, sbom.document(facts(), PINNED), 0)
    assert sha256(wheels[0]) == sha256(wheels[1])
    sbom.add(wheels[1], sbom.document(facts(), PINNED), 0)
    assert sha256(wheels[0]) == sha256(wheels[1])


def members(wheel: Path) -> list[tuple[str, bytes]]:
    with zipfile.ZipFile(wheel) as archive:
        return [(name, archive.read(name)) for name in archive.namelist()]

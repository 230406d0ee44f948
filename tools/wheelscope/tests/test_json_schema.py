"""Every --json output is valid under the schema, and the schema refuses what it should."""

import base64
import copy
import hashlib
import json
import struct
import subprocess
import sysconfig
import zipfile
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from program import ROOT, Scope

SCHEMA = json.loads((ROOT / "schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
MODULE = next(Path(sysconfig.get_path("purelib")).glob("numpy/_core/_multiarray_umath*.so"))
LIBC = next(Path("/lib").glob("*-linux-gnu/libc.so.6"))


def fat_binary() -> bytes:
    """One PTX text for sm_90, language version 8.0, not compressed."""
    ptx = b".version 8.0\n.target sm_90\n".ljust(32, b"\0")
    entry = bytearray(64)
    struct.pack_into("<HHIQ", entry, 0, 1, 0x101, len(entry), len(ptx))
    struct.pack_into("<HHI", entry, 24, 0, 8, 90)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(entry) + len(ptx)) + entry + ptx


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small wheel: a compiled module of NumPy's with device code put into it."""
    folder = tmp_path_factory.mktemp("wheel")
    code, module = folder / "code.fatbin", folder / "module.so"
    code.write_bytes(fat_binary())
    subprocess.run(["objcopy", "--add-section", f".nv_fatbin={code}", MODULE, module], check=True)
    members = {
        "sample/module.so": module.read_bytes(),
        "sample-1.0.dist-info/METADATA": b"Metadata-Version: 2.1\nName: sample\nVersion: 1.0\n",
        "sample-1.0.dist-info/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: false\n"
        b"Tag: py3-none-manylinux_2_28_x86_64\n",
    }
    rows = [
        f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip('=')}"
        f",{len(data)}\n"
        for name, data in members.items()
    ]
    members["sample-1.0.dist-info/RECORD"] = "".join(
        [*rows, "sample-1.0.dist-info/RECORD,,\n"]
    ).encode()
    path = folder / "sample-1.0-py3-none-manylinux_2_28_x86_64.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def test_schema_is_itself_valid() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_show(scope: Scope, wheel: Path) -> None:
    output = scope("show", wheel)
    assert output["items"][0]["cuda"]["ptx"] == ["90"]
    VALIDATOR.validate(output)
    VALIDATOR.validate(scope("show", MODULE, LIBC))


def test_check(scope: Scope, wheel: Path) -> None:
    output = scope("check", "--policy", ROOT / "policy.toml", wheel, code=1)
    assert output["items"][0]["findings"]
    VALIDATOR.validate(output)


def test_dump(scope: Scope, wheel: Path) -> None:
    VALIDATOR.validate(scope("dump", "--symbols", wheel))


def test_cover(scope: Scope, wheel: Path) -> None:
    VALIDATOR.validate(scope("cover", "--matrix", ROOT / "tests/matrix.toml", wheel, code=1))


def test_link(scope: Scope, wheel: Path) -> None:
    output = scope("link", wheel, LIBC, code=1)  # its BLAS library is not there
    assert output["link"]["missing"]
    VALIDATOR.validate(output)


def test_diff(scope: Scope, wheel: Path) -> None:
    output = scope("diff", wheel, MODULE, code=1)
    assert output["changes"]
    VALIDATOR.validate(output)


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
def test_schema_refuses(scope: Scope, wheel: Path, path: list[Any], value: Any) -> None:
    output = copy.deepcopy(scope("show", wheel))
    place = output
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(output)

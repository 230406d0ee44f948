"""Writes a wheel's SBOM: a CycloneDX list of its contents, in .dist-info/sboms (PEP 770).

The wheel's metadata names no dependency that is linked or copied into it: the static CUDA runtime, grafted libraries
and files given to the build are invisible to pip and to scanners. The SBOM names them: the runtime with the version
that its toolkit's lock file pins, a library or download with its digest. The same wheel always gets the same bytes.
"""

import hashlib
import json
import re
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

from wheelyard.problem import Problem
from wheelyard.tools import wheelfile
from wheelyard.tools.images import FOLDER

NAME = "cyclonedx.json"
# auditwheel puts libyaml-0.so.2 into NAME.libs/ as libyaml-0-8ec1a697.so.2.
GRAFTED = re.compile(r"[^/]+\.libs/(?P<name>.+)-[0-9a-f]{8}(?P<end>\.so[.\d]*)")
RUNTIME = re.compile(r"^(nvidia-cuda-runtime(?:-cu12)?)==([0-9.]+)", re.MULTILINE)


def document(
    facts: dict[str, Any], runtime: list[str] | None, others: Iterable[dict[str, Any]] = ()
) -> dict[str, Any]:
    """Returns the SBOM of a wheel, from the facts of `wheelscope show`, the runtime that its toolkit pins, and other
    parts that went into it."""
    about = facts["wheel"]
    root = f"pkg:pypi/{canonicalize_name(about['name'])}@{about['version']}"
    ours = {
        "type": "library",
        "bom-ref": root,
        "name": about["name"],
        "version": about["version"],
        "purl": root,
    }
    if about["license"]:
        ours["licenses"] = [{"expression": about["license"]}]
    is_static = facts["cuda"]["runtime"] == "static"
    parts = [_cuda_runtime(facts["cuda"]["runtime_version"], runtime)] if is_static else []
    parts += others
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": ours},
        "components": parts,
        "dependencies": [
            {"ref": root, "dependsOn": [part["bom-ref"] for part in parts]},
            *({"ref": part["bom-ref"]} for part in parts),
        ],
    }


def grafted(wheel: Path) -> list[dict[str, Any]]:
    """Returns the libraries that auditwheel has copied into a wheel; no file of the wheel tells their packages."""
    with zipfile.ZipFile(wheel) as archive:
        found = {name: parts for name in archive.namelist() if (parts := GRAFTED.fullmatch(name))}
        return [
            {
                "type": "library",
                "bom-ref": path,
                "name": f"{parts['name']}{parts['end']}",
                "description": "copied from the image that the wheel was built in",
                "scope": "required",
                "hashes": _hashes(hashlib.sha256(archive.read(path)).hexdigest()),
            }
            for path, parts in sorted(found.items())
        ]


def downloaded(files: Mapping[str, Sequence[str]]) -> list[dict[str, Any]]:
    """Returns the files that were fetched for the build, each with its URL and sha256."""
    return [
        {
            "type": "file",
            "bom-ref": f"downloads/{name}",
            "name": name,
            "description": "given to the build, which decides how much of it is in the wheel",
            "hashes": _hashes(digest),
            "externalReferences": [{"type": "distribution", "url": url}],
        }
        for name, (url, digest) in sorted(files.items())
    ]


def _hashes(sha256: str) -> list[dict[str, str]]:
    return [{"alg": "SHA-256", "content": sha256}]


def pinned_runtime(toolkit: str | None) -> list[str] | None:
    """Returns the package and version from which a toolkit's lock file takes libcudart_static.a."""
    locks = (FOLDER / f"toolkits/{toolkit}{kind}.lock" for kind in ("-static", ""))
    lock = next(filter(Path.exists, locks), None)
    found = RUNTIME.search(lock.read_text()) if lock else None
    return list(found.groups()) if found else None


def _cuda_runtime(seen: str | None, pinned: list[str] | None) -> dict[str, Any]:
    """Describes libcudart_static.a by the package that the toolkit's lock file takes it from."""
    if pinned is None:
        raise Problem(
            "the wheel has a static CUDA runtime, but its toolkit's lock file pins none; "
            "add it to docker/toolkits/ of wheelyard, then `make lock`"
        )
    name, version = pinned
    if seen and not version.startswith(f"{seen}."):
        raise Problem(f"the wheel has CUDA runtime {seen}, but its toolkit pins {version}")
    purl = f"pkg:pypi/{name}@{version}"
    return {
        "type": "library",
        "bom-ref": purl,
        "supplier": {"name": "NVIDIA Corporation"},
        "name": name,
        "version": version,
        "description": "CUDA runtime, linked statically (libcudart_static.a)",
        "scope": "required",
        "licenses": [{"license": {"name": "NVIDIA CUDA Toolkit EULA"}}],
        "purl": purl,
    }


def add(wheel: Path, content: dict[str, Any], epoch: int) -> None:
    """Rewrites `wheel` with the SBOM in it."""
    data = (json.dumps(content, indent=1) + "\n").encode()
    wheelfile.rewrite(wheel, epoch, add={f"sboms/{NAME}": data})


def linked_in(wheel: Path) -> list[str]:
    """Returns what a wheel's own SBOM says is linked into it."""
    with zipfile.ZipFile(wheel) as archive:
        names = [n for n in archive.namelist() if n.endswith(f".dist-info/sboms/{NAME}")]
        parts = [part for name in names for part in json.loads(archive.read(name))["components"]]
    return [f"{part['name']} {part.get('version', '')}".rstrip() for part in parts]


def extract(wheel: Path, folder: Path) -> Path:
    """Writes the SBOM inside a wheel to a file of its own."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(f".dist-info/sboms/{NAME}"))
        file = folder / f"{wheel.stem}.cyclonedx.json"
        file.write_bytes(archive.read(name))
    return file

"""Writes the matrix table for a torch release that this wheelyard does not know, from what pip finds.

    wheelyard torch 2.16

pip is asked for each Python, and for the metadata of one wheel for each CPU architecture. torch's own index has further
CUDA builds, which pip does not see on PyPI.
"""

import itertools
import json
import re
import subprocess
import tempfile
from typing import Any

from packaging.requirements import Requirement
from packaging.version import Version

from wheelyard.core.environment import isolated
from wheelyard.plan.cells import python_tag
from wheelyard.problem import Problem

ARCHS = ("x86_64", "aarch64")
PYTHONS = [f"3.{minor}{kind}" for minor, kind in itertools.product(range(10, 17), ("", "t"))]
# Packages whose versions begin with CUDA's.
CUDA = ("cuda-toolkit", "nvidia-cuda-runtime", "nvidia-cuda-runtime-cu12")


def versions(python: str, machine: str, *options: str) -> list[str]:
    """Returns the versions of torch that pip could install, the newest first, by the names of their files."""
    done = _pip("index", "versions", "torch", *for_machine(python, machine), *options)
    if listed := re.search(r"^Available versions: (.*)$", done.stdout, re.MULTILINE):
        return listed[1].split(", ")
    if "Retrying" in done.stderr or "No matching distribution" not in done.stderr:
        raise Problem(f"pip cannot list the releases of torch:\n{done.stderr}")
    return []


def metadata(release: str, python: str, machine: str) -> dict[str, Any]:
    """Returns the metadata of a release's wheel."""
    with tempfile.TemporaryDirectory() as nowhere:
        words = ["--quiet", "--dry-run", "--no-deps", "--report=-", f"--target={nowhere}"]
        done = _pip("install", *words, *for_machine(python, machine), f"torch=={release}")
    if done.returncode != 0:
        raise Problem(f"pip cannot read the metadata of torch {release}:\n{done.stderr}")
    (wheel,) = json.loads(done.stdout)["install"]
    return dict(wheel["metadata"])


def _pip(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(list(map(str, isolated("pip", *words))), capture_output=True, text=True)


def for_machine(python: str, machine: str) -> list[str]:
    """Returns pip's options for the wheels of torch for a Python and a CPU, which need not be this machine's."""
    return [
        *("--only-binary=:all:", f"--platform=manylinux_2_28_{machine}"),
        *(f"--python-version={python.rstrip('t')}", f"--abi={python_tag(python)}"),
    ]


def cuda_of(metadata: dict[str, Any], machine: str, python: str) -> str:
    """Returns the CUDA version whose libraries a torch requires: 13.2, or cpu."""
    given = {
        "platform_system": "Linux",
        "sys_platform": "linux",
        "platform_machine": machine,
        "python_version": python.rstrip("t"),
        "extra": "",
    }
    for text in metadata.get("requires_dist", []):
        wanted = Requirement(text)
        if wanted.name in CUDA and (not wanted.marker or wanted.marker.evaluate(given)):
            versions = [part.version for part in wanted.specifier if part.operator == "=="]
            return ".".join(versions[0].split(".")[:2]) if versions else "cpu"
    return "cpu"


def table(version: str) -> str:
    """Returns the table for ci/matrix.toml."""
    if not re.fullmatch(r"\d+\.\d+", version):
        raise Problem(
            f"`{version}` is not a version of torch as a matrix names it; write it like 2.16"
        )
    releases = {python: _newest(version, versions(python, ARCHS[0])) for python in PYTHONS}
    pythons = [python for python, newest in releases.items() if newest]
    if not pythons:
        raise Problem(f"pip finds no wheel of torch {version} for any Python here")
    of_archs = {
        arch: metadata(newest, pythons[0], arch)
        for arch in ARCHS
        if (newest := _newest(version, versions(pythons[0], arch)))
    }
    cuda = {a: cuda_of(m, a, pythons[0]) for a, m in of_archs.items()}
    builds = sorted({*cuda.values(), "cpu"})
    return f"""[torch."{version}"]
release = "{max((newest for newest in releases.values() if newest), key=Version)}"
pythons = {json.dumps(pythons)}
cuda = {json.dumps(builds)}  # add the builds of torch's own index that you serve
pypi = {{ {", ".join(f'{arch} = "{build}"' for arch, build in cuda.items())} }}"""


def _newest(version: str, known: list[str]) -> str:
    """Returns the newest of the releases 2.16.0, 2.16.1 ... of a version 2.16; empty if there is none."""
    return next((name for name in known if name.startswith(f"{version}.")), "")

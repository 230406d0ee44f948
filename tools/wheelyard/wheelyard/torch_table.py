"""Writes the table of a torch release that this version of wheelyard does not know, from what pip finds of it.

    wheelyard torch 2.16

pip is asked for each Python, and reads a wheel's metadata alone. torch's own index has further CUDA builds,
which cannot be seen there.
"""

import itertools
import json
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from packaging.requirements import Requirement
from packaging.version import Version

from wheelyard.core.environment import isolated
from wheelyard.plan.cells import python_tag
from wheelyard.problem import Problem

ARCHS = ("x86_64", "aarch64")
PYTHONS = [f"3.{minor}{kind}" for minor, kind in itertools.product(range(10, 17), ("", "t"))]
CUDA = (
    "cuda-toolkit",
    "nvidia-cuda-runtime",
    "nvidia-cuda-runtime-cu12",
)  # their versions begin with CUDA's
AT_ONCE = 4


def found(wanted: str, python: str, machine: str, *options: str) -> dict[str, Any] | str:
    """The metadata of the wheel that pip would take, or what pip says where there is none."""
    with tempfile.TemporaryDirectory() as nowhere:
        command = list(map(str, isolated("pip", "install", "--quiet", "--dry-run", "--no-deps")))
        command += ["--report=-", "--only-binary=:all:", f"--target={nowhere}", *options]
        command += [
            f"--platform=manylinux_2_28_{machine}",
            f"--python-version={python.rstrip('t')}",
        ]
        command += [f"--abi={python_tag(python)}", wanted]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        return done.stderr
    (wheel,) = json.loads(done.stdout)["install"]
    metadata: dict[str, Any] = wheel["metadata"]
    return metadata


def cuda_of(metadata: dict[str, Any], machine: str, python: str) -> str:
    """The CUDA version whose libraries a torch asks for: 13.2, or cpu."""
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
    """The table for ci/matrix.toml."""
    wanted = f"torch=={version}.*"
    with ThreadPoolExecutor(AT_ONCE) as pool:
        asked = list(pool.map(lambda python: found(wanted, python, ARCHS[0]), PYTHONS))
    wheels = {p: seen for p, seen in zip(PYTHONS, asked, strict=True) if isinstance(seen, dict)}
    if not wheels:
        raise Problem(f"pip finds no wheel of torch {version} here; it says:\n{asked[0]}")
    pythons = list(wheels)
    of_archs = {arch: found(wanted, pythons[0], arch) for arch in ARCHS}
    cuda = {a: cuda_of(m, a, pythons[0]) for a, m in of_archs.items() if isinstance(m, dict)}
    builds = sorted({*cuda.values(), "cpu"})
    return f"""[torch."{version}"]
release = "{max((str(seen["version"]) for seen in wheels.values()), key=Version)}"
pythons = {json.dumps(pythons)}
cuda = {json.dumps(builds)}  # add the builds of torch's own index that you serve
pypi = {{ {", ".join(f'{arch} = "{build}"' for arch, build in cuda.items())} }}"""

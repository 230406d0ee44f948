"""An environment as `wheelscope machine --json` would save it."""

from typing import Any

from packaging import tags

from validation.replay.cases import Environment

ARCHITECTURE = "x86_64"
OLDEST_GLIBC = 5  # of manylinux1


def platforms(glibc: str) -> list[str]:
    """Returns the platform tags of a machine, newest first."""
    old_names = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}
    found = [f"linux_{ARCHITECTURE}"]
    for minor in range(int(glibc.partition(".")[2]), OLDEST_GLIBC - 1, -1):
        found.append(f"manylinux_2_{minor}_{ARCHITECTURE}")
        if minor in old_names:
            found.append(f"{old_names[minor]}_{ARCHITECTURE}")
    return found


def machine(environment: Environment) -> dict[str, Any]:
    version = tuple(int(part) for part in environment.python.split(".")[:2])
    abi = "cp" + "".join(str(part) for part in version)
    known = platforms(environment.glibc)
    supported = [
        *tags.cpython_tags(version, [abi], known),
        *tags.compatible_tags(version, abi, known),
    ]
    prefix = "/opt/env"
    site = f"{prefix}/lib/python{version[0]}.{version[1]}/site-packages"
    torch = environment.torch
    return {
        "schema_version": 2,
        "machine": {
            "architecture": ARCHITECTURE,
            "libc": "glibc",
            "libc_version": environment.glibc,
            "driver": environment.driver,
            "gpus": [environment.gpu] if environment.gpu else [],
            "python": {
                "executable": f"{prefix}/bin/python",
                "version": environment.python,
                "abi": abi,
                "prefix": prefix,
                "base_prefix": "/usr",
                "architecture": ARCHITECTURE,
                "site_packages": [site],
                "tags": [str(tag) for tag in supported],
            },
            "torch": {
                "path": f"{site}/torch",
                "version": torch["version"],
                "cuda": torch.get("cuda"),
                "rocm": None,
                "cxx11_abi": True,
            }
            if torch
            else None,
            "cuda_libraries": [],
            "notes": [],
        },
    }

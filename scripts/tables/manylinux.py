"""Writes csrc/wheelscope/data/manylinux.json from the policies of the installed auditwheel.

auditwheel lists for each policy all that it allows, and a newer policy allows whatever an older one
does. Turned round, each symbol version and each library has one fact: the oldest policy that allows
it. A wheel deserves the newest of the policies that its needs name.
"""

import json
from importlib.metadata import version
from importlib.resources import files
from typing import Any

from scripts.tables import layout


def read_policies(file_name: str) -> list[dict[str, Any]]:
    """The policies of one libc, oldest first, without the catch-all `linux`."""
    policies = json.loads((files("auditwheel") / "policy" / file_name).read_text())
    tagged = [policy for policy in policies if policy["name"] != "linux"]
    return sorted(tagged, key=lambda policy: -policy["priority"])


def oldest_for_symbol_versions(policies: list[dict[str, Any]]) -> dict[str, Any]:
    """For each architecture its policies, and the oldest that allows each symbol version."""
    arches: dict[str, Any] = {}
    for policy in policies:
        for arch, prefixes in policy["symbol_versions"].items():
            facts = arches.setdefault(arch, {"policies": [], "symbol_versions": {}})
            facts["policies"].append(policy["name"])
            for prefix, versions in prefixes.items():
                oldest = facts["symbol_versions"].setdefault(prefix, {})
                for symbol_version in versions:
                    oldest.setdefault(symbol_version, policy["name"])
    return arches


def oldest_for_libraries(policies: list[dict[str, Any]]) -> dict[str, str]:
    """The oldest policy that lets a wheel need each library of the system."""
    oldest: dict[str, str] = {}
    for policy in policies:
        for library in sorted(policy["lib_whitelist"]):
            oldest.setdefault(library, policy["name"])
    return oldest


def libc_table(file_name: str) -> dict[str, Any]:
    policies = read_policies(file_name)
    return {
        "aliases": {alias: policy["name"] for policy in policies for alias in policy["aliases"]},
        "libraries": oldest_for_libraries(policies),
        "forbidden_symbols": {policy["name"]: policy["blacklist"] for policy in policies},
        "arches": oldest_for_symbol_versions(policies),
    }


def main() -> None:
    layout.write(
        "manylinux.json",
        {
            "source": f"auditwheel {version('auditwheel')}, auditwheel/policy/*-policy.json",
            "generator": "make table-manylinux",
            "manylinux": libc_table("manylinux-policy.json"),
            "musllinux": libc_table("musllinux-policy.json"),
        },
    )


if __name__ == "__main__":
    main()

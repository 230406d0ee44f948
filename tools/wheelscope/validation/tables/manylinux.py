"""Writes src/data/manylinux.csv from the policies of the installed auditwheel.

For each policy, auditwheel lists everything it allows and forbids, and a newer policy allows
whatever an older one does. This table is the reverse: for each symbol version, library and
forbidden symbol, the oldest policy that allows it. A wheel's policy is the newest of those that its
needs require.
"""

import json
from collections.abc import Iterator
from importlib.metadata import version
from importlib.resources import files
from typing import Any

from validation.tables import layout


def read_policies(file_name: str) -> list[dict[str, Any]]:
    """Returns the policies of one kind of system, oldest first, without the catch-all `linux`."""
    policies = json.loads((files("auditwheel") / "policy" / file_name).read_text())
    tagged = [policy for policy in policies if policy["name"] != "linux"]
    return sorted(tagged, key=lambda policy: -policy["priority"])


def oldest_first(policies: list[dict[str, Any]]) -> Iterator[tuple[str, str, str, str]]:
    """Yields rows of the table; of several policies that allow the same, the oldest."""
    seen = set()
    for policy in policies:
        name = policy["name"]
        rows = [(alias, "alias", "", name) for alias in policy["aliases"]]
        rows += [(library, "library", "", name) for library in sorted(policy["lib_whitelist"])]
        for arch, prefixes in policy["symbol_versions"].items():
            rows.append((name, "policy", arch, name))
            rows += [
                (f"{prefix}_{number}", "version", arch, name)
                for prefix, numbers in prefixes.items()
                for number in numbers
            ]
        yield from (row for row in rows if row[:3] not in seen)
        seen.update(row[:3] for row in rows)


def forbidden(policies: list[dict[str, Any]], system: str) -> Iterator[tuple[str, str, str, str]]:
    """Yields symbols, the library that they are private to, and the oldest policy after the last
    that forbids them; the system's name alone if none allows them."""
    last = {
        (library, symbol): number
        for number, policy in enumerate(policies)
        for library, symbols in policy["blacklist"].items()
        for symbol in symbols
    }
    names = [policy["name"] for policy in policies] + [system]
    for (library, symbol), number in sorted(last.items(), key=lambda item: (item[1], item[0])):
        yield symbol, "forbidden", library, names[number + 1]


def main() -> None:
    head = (
        "The platform policies. Source: the policies of auditwheel "
        f"{version('auditwheel')}. Generator: make table TABLE=manylinux"
    )
    rows = []
    for system in ("manylinux", "musllinux", "android"):
        policies = read_policies(f"{system}-policy.json")
        rows += [*oldest_first(policies), *forbidden(policies, system)]
    layout.write_csv("manylinux.csv", [head], "names,kind,arch,policy", rows)


if __name__ == "__main__":
    main()

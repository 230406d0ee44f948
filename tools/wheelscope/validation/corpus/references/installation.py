"""`packaging`, as the reference for where pip would install a wheel; `cover` must agree with it.

pip asks for the file name's tags, Requires-Python and the requirement of torch. `cover` asks more
(whether the wheel would work), so it may still reject what pip takes, for another reason.
"""

import email
import email.message
import functools
import tempfile
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.tags import Tag
from packaging.utils import canonicalize_name, parse_wheel_filename

from validation import program, pypi
from validation.corpus.reference import Facts, Reference
from validation.corpus.references.claims import claim

ARCHES = ("x86_64", "aarch64", "s390x")
TORCHES = ("2.10", "2.14", "2.15")
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.13t", "3.14", "3.14t", "3.15", "3.15t")
NEWEST_GLIBC = 49
RELEASES = range(20)  # of a minor version of torch or Python

# How `cover` starts a reason for which pip would not install a wheel.
REFUSALS = ("its tag is not", "it requires", "it is not for", "it is for musl", "it is for another")


@functools.cache
def tags_of(arch: str, python: str) -> frozenset[Tag]:
    """Returns the tags that pip installs on a Linux with glibc."""
    return frozenset(program.tags_of(python, pypi.platforms(NEWEST_GLIBC, arch)))


def some_release_fulfils(specifiers: SpecifierSet, minor: str) -> bool:
    return any(specifiers.contains(f"{minor}.{patch}", prereleases=True) for patch in RELEASES)


def takes_torch(metadata: email.message.Message, arch: str, torch: str, python: str) -> bool:
    for text in metadata.get_all("Requires-Dist", []):
        try:
            requirement = Requirement(str(text))
        except InvalidRequirement:
            continue
        if canonicalize_name(requirement.name) != "torch":
            continue
        number = python.rstrip("t")
        environment = {
            "python_version": number,
            "python_full_version": f"{number}.0",
            "platform_machine": arch,
            "sys_platform": "linux",
            "platform_system": "Linux",
            "extra": "",
        }
        if requirement.marker and not requirement.marker.evaluate(environment):
            continue
        if not some_release_fulfils(requirement.specifier, torch):
            return False
    return True


def ask(wheel: Path, tree: Path) -> Facts:  # noqa: ARG001 (the wheel is enough)
    tags = parse_wheel_filename(wheel.name)[3]
    metadata = email.message_from_bytes(claim(wheel, "METADATA"))
    pythons = SpecifierSet(str(metadata.get("Requires-Python", "")))
    return {
        "": {
            f"{arch}, torch {torch}, Python {python}": bool(tags & tags_of(arch, python))
            and some_release_fulfils(pythons, python.rstrip("t"))
            and takes_torch(metadata, arch, torch, python)
            for arch, torch, python in product(ARCHES, TORCHES, PYTHONS)
        }
    }


def matrix() -> str:
    pythons = ", ".join(f'"{python}"' for python in PYTHONS)
    arches = "".join(f"[arch.{arch}]\n" for arch in ARCHES)
    rows = f'cuda = ["cpu"]\npythons = [{pythons}]\n'
    return arches + "".join(f'[torch."{torch}"]\n{rows}' for torch in TORCHES)


def ours(item: Any, wheel: Path, theirs: Facts) -> Facts:  # noqa: ARG001
    """Returns whether each user is served; takes pip's answer if pip would install a wheel that
    would not work."""
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        print(matrix(), file=file, flush=True)
        cells = program.ask("cover", "--matrix", file.name, wheel)["cells"]
    facts: Facts = {"": {}}
    for cell in cells:
        place = f"{cell['arch']}, torch {cell['torch']}, Python {cell['python']}"
        if cell["wheel"]:
            facts[""][place] = True
        elif any(reason["reason"].startswith(REFUSALS) for reason in cell["reasons"]):
            facts[""][place] = False
        else:
            facts[""][place] = theirs[""][place]
    return facts


INSTALLATION = Reference("installation", lambda: version("packaging"), ask, ours)

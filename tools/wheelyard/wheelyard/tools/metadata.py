"""Checks a distribution's metadata; an sdist's is checked before anything is compiled."""

import email
import email.message
import tarfile
from collections.abc import Mapping
from pathlib import Path

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from wheelyard.core import shell
from wheelyard.core.environment import isolated
from wheelyard.problem import Problem
from wheelyard.tools import wheelfile

TWINE = "twine"  # the id of its warnings in the policy's levels


def check(file: Path, levels: Mapping[str, str], log: Path) -> None:
    """Runs `twine check`. Its warnings are about the project's page; only the policy can make them errors."""
    strict = ["--strict"] if levels.get(TWINE) == "error" else []
    command = isolated("twine", "--no-color", "check", *strict, file)
    try:
        shell.run(command, log, what=f"twine check of {file.name}")
    except Problem as problem:
        hint = ""
        if "`long_description` missing" in str(problem):
            hint = "\nThe project has no description: name its README in pyproject.toml, [project] readme"
        if strict:
            hint += f'\nci/policy.toml makes warnings errors: [levels] {TWINE} = "error"'
        raise Problem(f"{problem}{hint}") from None


def check_sdist(
    sdist: Path, name: str, pythons: list[str], levels: Mapping[str, str], log: Path
) -> None:
    """Raises if an index or pip would refuse the sdist, or if it is not of the project that the matrix names."""
    check(sdist, levels, log)
    said = fields(sdist)
    if canonicalize_name(said["Name"]) != canonicalize_name(name):
        raise Problem(
            f"the build calls the project {said['Name']}, and ci/matrix.toml or pyproject.toml {name}; correct it there"
        )
    allowed = SpecifierSet(said["Requires-Python"] or "")
    refused = [p for p in pythons if not allowed.contains(p.rstrip("t"), prereleases=True)]
    if refused:
        raise Problem(
            f"the project requires Python {allowed}, and the plan has wheels for {', '.join(refused)}; take them out "
            "of ci/matrix.toml, [python] versions"
        )


def fields(file: Path) -> email.message.Message:
    """Returns the metadata of a wheel or an sdist."""
    if file.suffix == ".whl":
        return wheelfile.fields(file)
    with tarfile.open(file) as archive:
        top = file.name.removesuffix(".tar.gz")
        member = archive.extractfile(f"{top}/PKG-INFO")
        assert member is not None
        return email.message_from_bytes(member.read())

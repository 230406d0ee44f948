"""Defines ci/policy.toml: the rules that a project's wheels must keep to. wheelscope judges by it."""

import re
from dataclasses import dataclass
from pathlib import Path

from wheelyard.config.schema import key, parse, read

FILE = "ci/policy.toml"
LEVELS = ("error", "warning", "note", "off")
VERSION = r"\d+(\.\d+)+"
# What the values of some keys look like, with an example. The gate would take another value for a rule that every wheel
# keeps or breaks, after everything was compiled.
FORMS = {
    ("platform", "highest"): (r"manylinux(1|2010|2014|_2_\d+)", "manylinux_2_28"),
    ("python", "min"): (VERSION, "3.10"),
    ("torch", "min"): (VERSION, "2.10"),
    ("cuda", "sass"): (r"\d+[af]?", "90"),
    ("cuda", "driver"): (VERSION, "525.60.13"),
}


@dataclass(frozen=True)
class Platform:
    highest: str = key("The newest platform tag that a wheel may need, such as manylinux_2_28.", "")


@dataclass(frozen=True)
class Size:
    limit_mb: int | None = key("The largest wheel, in MB; PyPI takes 100.", None)


@dataclass(frozen=True)
class Python:
    abi: list[str] = key(
        "Kinds of Python ABI that are allowed.", [], ("none", "abi3", "abi3t", "version")
    )
    min: str = key("The oldest Python that the wheel must support.", "")


@dataclass(frozen=True)
class Torch:
    abi: list[str] = key("Kinds of torch ABI that are allowed.", [], ("none", "stable", "cxx"))
    min: str = key("The oldest torch that the wheel must support.", "")


@dataclass(frozen=True)
class Cuda:
    runtime: list[str] = key(
        "How the CUDA runtime may be linked.", [], ("none", "static", "dynamic")
    )
    sass: list[str] = key("GPU targets that must have native code, such as 80 and 90a.", [])
    ptx: bool = key("Whether there must be PTX for newer GPUs.", False)
    driver: str = key("The oldest driver that the wheel must support.", "")


@dataclass(frozen=True)
class Libraries:
    needed: list[str] | None = key(
        "Libraries that a wheel may need in addition to its own and the platform's.", None
    )
    rpath: list[str] | None = key("Allowed beginnings of RPATH and RUNPATH entries.", None)


@dataclass(frozen=True)
class Hardening:
    relro: str = key(
        "The relocations that must be read-only after start.", "", ("", "full", "partial")
    )
    bind_now: bool = key("Whether symbols must be bound when a library is loaded.", False)
    nx: bool = key("Whether the stack must not be executable.", False)
    stack_protector: bool = key("Whether functions must check their stack.", False)


@dataclass(frozen=True)
class Contents:
    debug_info: bool = key("Whether debug information is allowed.", True)
    build_paths: list[str] = key("Paths with which no string in a binary may start.", [])


@dataclass(frozen=True)
class Policy:
    """The rules that a project's wheels must keep to before they may be released; nothing else is judged."""

    platform: Platform = key("The systems to support.", Platform())
    size: Size = key("The size of a wheel.", Size())
    python: Python = key("The Python ABI.", Python())
    torch: Torch = key("The torch ABI.", Torch())
    cuda: Cuda = key("CUDA code.", Cuda())
    libraries: Libraries = key("Shared libraries.", Libraries())
    hardening: Hardening = key("Protections of the binaries.", Hardening())
    contents: Contents = key("What a wheel may contain.", Contents())
    levels: dict[str, str] = key(
        "The level of each finding, by its id: error, warning, note or off. The ids are those of wheelscope and "
        "check-wheel-contents (W002 ...), and `twine` for its warnings. W009 and W010 are off by default.",
        {},
    )


def levels(root: Path, name: str) -> dict[str, str]:
    """Returns the level that a project's policy gives to one finding, if any. The gate reports mistakes in the file."""
    file = root / FILE
    found = load(file).levels if file.is_file() else {}
    return {name: found[name]} if name in found else {}


def load(file: Path) -> Policy:
    """Reads the policy in `file` and checks every key."""
    tables, source = parse(file, file.name)
    policy: Policy = read(Policy, tables, [], source)
    for path, (form, example) in FORMS.items():
        given = getattr(getattr(policy, path[0]), path[1])
        for value in given if isinstance(given, list) else [given]:
            if value and not re.fullmatch(form, value):
                what = f"{'.'.join(path)} is `{value}`; it looks like {example}"
                raise source.problem([*path], what)
    for name, level in policy.levels.items():
        if level not in LEVELS:
            what = f"levels.{name} is `{level}`; it is one of: {', '.join(LEVELS)}"
            raise source.problem(["levels", name], what)
    return policy

"""Defines ci/policy.toml: what a project's wheels must be before they may be released. wheelscope judges by it."""

from dataclasses import dataclass
from pathlib import Path

from wheelyard.config.schema import key, parse, read

FILE = "ci/policy.toml"


@dataclass(frozen=True)
class Platform:
    highest: str = key("The newest system that users must have: manylinux_2_28.", "")


@dataclass(frozen=True)
class Size:
    limit_mb: int | None = key("The largest wheel, in MB; PyPI takes 100.", None)


@dataclass(frozen=True)
class Python:
    abi: list[str] = key("Kinds of Python ABI that are allowed: none, abi3, version.", [])
    min: str = key("The oldest Python that must work.", "")


@dataclass(frozen=True)
class Torch:
    abi: list[str] = key("Kinds of torch ABI that are allowed: none, stable, cxx.", [])
    min: str = key("The oldest torch that must work.", "")


@dataclass(frozen=True)
class Cuda:
    runtime: list[str] = key("How the CUDA runtime may be linked: static, dynamic.", [])
    sass: list[str] = key("GPU targets that must have native code: 80, 90a.", [])
    ptx: bool = key("Whether there must be PTX for newer GPUs.", False)
    driver: str = key("The oldest driver that must do.", "")


@dataclass(frozen=True)
class Libraries:
    needed: list[str] | None = key(
        "Libraries that may be needed beyond the wheel's and the platform's own.", None
    )
    rpath: list[str] | None = key("What an RPATH or RUNPATH entry may start with.", None)


@dataclass(frozen=True)
class Hardening:
    relro: str = key(
        "Relocations that are read-only after start: full or partial.", "", ("", "full", "partial")
    )
    bind_now: bool = key("Whether symbols must be bound when a library is loaded.", False)
    nx: bool = key("Whether the stack must not be executable.", False)
    stack_protector: bool = key("Whether functions must check their stack.", False)


@dataclass(frozen=True)
class Contents:
    debug_info: bool = key("Whether debug information may stay.", True)
    build_paths: list[str] = key("What no string in a binary may start with.", [])


@dataclass(frozen=True)
class Policy:
    """What a project's wheels must be before they may be released; what is not named is not judged."""

    platform: Platform = key("The systems that must be served.", Platform())
    size: Size = key("The size of a wheel.", Size())
    python: Python = key("The Python ABI.", Python())
    torch: Torch = key("The torch ABI.", Torch())
    cuda: Cuda = key("CUDA code.", Cuda())
    libraries: Libraries = key("Shared libraries.", Libraries())
    hardening: Hardening = key("Protections of the binaries.", Hardening())
    contents: Contents = key("What may be inside.", Contents())
    levels: dict[str, str] = key(
        "The level of a finding, by its id: error, warning, note or off. Ids are those of wheelscope and of "
        "check-wheel-contents (W002 ...), and `twine` for its warnings. Off by default: W009, W010.",
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
    return policy

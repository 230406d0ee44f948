"""What is chosen for a project and why: the strategy, the torches, Pythons and CUDA versions to begin with."""

import platform
from dataclasses import dataclass

from packaging.specifiers import SpecifierSet

from wheelyard.config.matrix import version_key
from wheelyard.init.sources import Found

TORCHES = 2  # the newest; more are a line each
PYTHONS = 2


@dataclass(frozen=True)
class Choice:
    strategy: str
    torches: dict[str, str]  # torch -> the CUDA build that PyPI has of it here, or cpu
    pythons: list[str]
    requires: list[str]
    reasons: dict[str, str]


def choose(found: Found, known: dict[str, dict[str, dict[str, object]]]) -> Choice:
    reasons: dict[str, str] = {}
    strategy = _strategy(found, reasons)
    torches = _torches(found, known, reasons)
    pythons = _pythons(found, known, torches, reasons)
    requires = [text for text in found.requires if not _is_there(text)]
    if requires:
        reasons["requires"] = "from the project's own [build-system]"
    return Choice(strategy, torches, pythons, requires, reasons)


def _strategy(found: Found, reasons: dict[str, str]) -> str:
    pybind, torch = found.uses.get("pybind", []), found.uses.get("torch", [])
    if found.limited_api and not pybind:
        reasons["strategy"] = f"{found.reasons['limited_api']}, and no source includes pybind11"
        return "abi3"
    bound = pybind or found.uses.get("python", [])
    if bound:
        what = "pybind11, beyond Python's limited API" if pybind else "Python's C API"
        cpp = f"; {torch[0]} torch's C++ API" if torch else ""
        reasons["strategy"] = f"{bound[0]} uses {what}{cpp}"
    else:
        reasons["strategy"] = (
            "it serves every extension; wheelscope says when a smaller one would do"
        )
    return "each"


def _torches(
    found: Found, known: dict[str, dict[str, dict[str, object]]], reasons: dict[str, str]
) -> dict[str, str]:
    newest = sorted(known["torch"], key=version_key)[-TORCHES:]
    chosen = {}
    for name in newest:
        pypi = known["torch"][name]["pypi"]
        assert isinstance(pypi, dict)
        chosen[name] = str(pypi[platform.machine()]) if found.has_cuda else "cpu"
    builds = (
        "the CUDA builds that PyPI has" if found.has_cuda else "without CUDA code, any build does"
    )
    reasons["torch"] = f"the newest {TORCHES}; {builds}"
    return chosen


def _pythons(
    found: Found,
    known: dict[str, dict[str, dict[str, object]]],
    torches: dict[str, str],
    reasons: dict[str, str],
) -> list[str]:
    """Pythons that Debian's images and every chosen torch have, and that the project allows."""
    allowed = SpecifierSet(found.requires_python.strip())
    candidates = [p for p in known["python"]["debian"] if allowed.contains(p)]
    fitting = [
        p for p in candidates if all(p in _list(known["torch"][t]["pythons"]) for t in torches)
    ]
    reasons["python"] = "in Debian's images and in every chosen torch" + (
        f", within {found.requires_python}" if found.requires_python else ""
    )
    return fitting[:PYTHONS]


def _list(value: object) -> list[str]:
    assert isinstance(value, list)
    return value


def _is_there(requirement: str) -> bool:
    """What the build image has anyway."""
    name = requirement.split(";")[0].strip()
    for end in "<>=!~[ ":
        name = name.split(end)[0]
    return name.lower() in (
        "setuptools",
        "wheel",
        "torch",
        "cmake",
        "ninja",
        "build",
        "packaging",
        "",
    )

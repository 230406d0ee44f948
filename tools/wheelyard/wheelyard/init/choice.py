"""Chooses a project's strategy and its first torch, Python and CUDA versions, with reasons."""

import platform
from dataclasses import dataclass
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from wheelyard.config.matrix import version_key
from wheelyard.init.sources import Found
from wheelyard.plan.project import beside_torch, requirement
from wheelyard.problem import Problem

TORCHES = 2  # the newest; users add others with a line each
PYTHONS = 2

Known = dict[str, Any]


@dataclass(frozen=True)
class Choice:
    strategy: str
    torches: dict[str, str]  # torch -> the CUDA build on PyPI for this machine, or cpu; or empty
    pythons: list[str]
    runs: list[tuple[str, str]]  # cells to run, each a torch and a Python
    dependencies: list[str]  # what the project needs beside torch
    test_dependencies: list[str]  # and what its tests need besides that
    reasons: dict[str, str]
    abi3_python: str = ""


def choose(found: Found, known: Known) -> Choice:
    reasons: dict[str, str] = {}
    strategy = _strategy(found, reasons)
    torches = _torches(found, known, strategy, reasons)
    oldest = found.limited_api if strategy == "abi3" else ""
    pythons, runs = _pythons(found, known, torches, reasons, oldest)
    needs = list(beside_torch(found.dependencies or [], found.root))
    if strategy == "abi3":
        oldest = next((p for p in known["python"]["debian"] if p in pythons), "")
        reasons["abi3"] = "the oldest of Debian's Pythons that has this limited API"
    tests_need = beside_torch(found.test_requires, found.root) if found.tests else ()
    own = canonicalize_name(found.name)
    more = [t for t in tests_need if canonicalize_name(requirement(t, found.root).name) != own]
    return Choice(strategy, torches, pythons, runs, needs, more, reasons, oldest)


def _strategy(found: Found, reasons: dict[str, str]) -> str:
    pybind, torch = found.uses.get("pybind", []), found.uses.get("torch", [])
    bound = pybind or found.uses.get("python", [])
    if (stable := found.uses.get("stable")) and not torch and not bound and not found.calls_nvcc:
        reasons["strategy"] = (
            f"{stable[0]} uses torch's stable ABI, and no source uses its C++ API or Python's C API"
        )
        return "universal"
    if found.any_python and not torch and not bound:
        reasons["strategy"] = (
            f"{found.any_python}, and no source uses torch's C++ API or Python's C API"
        )
        return "universal"
    if found.limited_api and not pybind:
        reasons["strategy"] = f"{found.reasons['limited_api']}, and no source includes pybind11"
        if stable and found.calls_nvcc:
            reasons["strategy"] += "; CUDAExtension calls nvcc, but clang compiles universal wheels"
        return "abi3"
    if bound:
        what = "pybind11, beyond Python's limited API" if pybind else "Python's C API"
        reasons["strategy"] = f"{bound[0]} uses {what}"
        if torch:
            subject = "" if torch[0] == bound[0] else f"{torch[0]} uses "
            reasons["strategy"] += f", and {subject}torch's C++ API"
    else:
        reasons["strategy"] = (
            "it works for every extension; after a release wheelyard says whether fewer wheels are enough"
        )
    return "each"


def _torches(found: Found, known: Known, strategy: str, reasons: dict[str, str]) -> dict[str, str]:
    """Returns the newest torches that the project's requirements allow, or all of them for a universal wheel."""
    ordered = sorted(known["torch"], key=version_key)
    # A binary that serves every torch is built on the headers of one, so its build requirements do not matter.
    texts = [*(found.dependencies or []), *([] if strategy == "universal" else found.requires)]
    wanted = [requirement(text, found.root) for text in texts]
    pins = [r.specifier for r in wanted if r.name == "torch" and r.specifier and not r.marker]
    allowed = [
        t for t in ordered if all(pin.contains(known["torch"][t]["release"]) for pin in pins)
    ]
    pinned = ", ".join(dict.fromkeys(f"torch{pin}" for pin in pins))
    said = f" within {pinned}" if pins else ""
    if not allowed:
        raise Problem(
            f"the project requires {pinned}, and this version of wheelyard knows "
            f"{ordered[0]} to {ordered[-1]}; widen the requirement"
        )
    if strategy == "universal":
        reasons["torch"] = f"all that wheelyard knows{said}: one wheel serves them"
        return dict.fromkeys(allowed, "")
    builds = (
        "the CUDA builds that PyPI has" if found.has_cuda else "without CUDA code, any build does"
    )
    reasons["torch"] = f"the newest {TORCHES}{said}; {builds}"
    return {
        name: str(known["torch"][name]["pypi"][platform.machine()]) if found.has_cuda else "cpu"
        for name in allowed[-TORCHES:]
    }


def _pythons(
    found: Found, known: Known, torches: dict[str, str], reasons: dict[str, str], oldest: str
) -> tuple[list[str], list[tuple[str, str]]]:
    """Returns the Pythons that the project allows and every chosen torch has, preferably those of Debian's images, and
    the cells to run. `oldest` is the one whose limited API the wheels use; they do not run on older ones."""
    try:
        allowed = SpecifierSet(found.requires_python.strip())
    except InvalidSpecifier:
        raise Problem(
            f"the project's requires-python is `{found.requires_python}`, which is not a version specifier; "
            "write it like >=3.10"
        ) from None
    common = [p for p in known["torch"][[*torches][-1]]["pythons"] if not p.endswith("t")]
    common = [p for p in common if all(p in known["torch"][t]["pythons"] for t in torches)]
    fitting = [
        p for p in common if allowed.contains(p) and version_key(p) >= version_key(oldest or "3")
    ]
    within = f", within {found.requires_python}" if found.requires_python else ""
    within += f", from {oldest}'s limited API on" if oldest else ""
    if not fitting:
        raise Problem(
            f"the project requires Python {found.requires_python}, and the torches {', '.join(torches)} have wheels "
            f"for {', '.join(common)}; widen requires-python"
        )
    here = [p for p in fitting if p in known["python"]["debian"]][:PYTHONS]
    if here:
        reasons["python"] = f"in Debian's images and in every chosen torch{within}"
        return here, [(torch, python) for torch in torches for python in here]
    reasons["python"] = (
        f"in every chosen torch{within}; Debian's images have none of them: --base pypa builds the wheels"
    )
    return fitting[:PYTHONS], []

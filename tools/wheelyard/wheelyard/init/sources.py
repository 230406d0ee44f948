"""What a project is, as far as reading its files tells: names, build, CUDA code, which ABIs its sources use."""

import ast
import configparser
import os
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wheelyard.core import shell

SOURCES = (".c", ".cc", ".cpp", ".cxx", ".cu", ".cuh", ".h", ".hpp")
SKIPPED = {"build", "dist", "third_party", "node_modules", "docs", "benchmarks", "wheelhouse"}
LARGEST = 1 << 20  # a source beyond this is generated
TESTS = ("tests", "test")
NO_PACKAGES = {*TESTS, *SKIPPED, "examples", "scripts", "csrc"}
# What in a C++ source binds a wheel, and to what.
USES = {
    "stable": re.compile(r"STABLE_TORCH_LIBRARY|torch/csrc/stable|torch/headeronly"),
    "torch": re.compile(
        r"#include\s*[<\"](torch/(extension|all|torch|script|library)\.h|ATen/|c10/)"
    ),
    "pybind": re.compile(r"#include\s*[<\"](pybind11/|torch/(extension|python)\.h)"),
    "python": re.compile(r"#include\s*[<\"]Python\.h"),
}


@dataclass
class Found:
    """Facts with their reasons; what reading cannot tell is empty."""

    root: Path
    folder: str = ""  # the one below `root` that has the setup
    name: str = ""
    import_name: str = ""
    requires_python: str = ""
    requires: list[str] = field(default_factory=list)  # what its build needs
    backend: str = "setuptools"
    has_cuda: bool = False
    has_device_code: bool = False  # CUDA sources of its own, not only calls of NVIDIA's libraries
    limited_api: bool = False
    uses: dict[str, list[str]] = field(default_factory=dict)  # a key of USES -> the files
    tests: list[str] = field(default_factory=list)
    reasons: dict[str, str] = field(default_factory=dict)

    @property
    def repository(self) -> Path:
        return self.root.parents[len(Path(self.folder).parts) - 1] if self.folder else self.root


def read(root: Path, folder: str = "") -> Found:
    """`folder`: the one of the repository `root` that has the project's setup."""
    found = Found(root / folder, folder)
    root = found.root
    _pyproject(found)
    _setup_py(found)
    # A setup.py that drives CMake in a folder beside it has no source of its own.
    if not _sources(found, root):
        _sources(found, found.repository)
    _packages(found)
    places = [str(Path(top, name)) for top in ("", *_package_folders(root)) for name in TESTS]
    for name in places:
        if any((root / name).rglob("test*.py")):
            found.tests = [name]
            found.reasons["tests"] = f"{name}/ has tests"
            break
    return found


def _pyproject(found: Found) -> None:
    file = found.root / "pyproject.toml"
    tables: dict[str, Any] = tomllib.loads(file.read_text()) if file.is_file() else {}
    project, system = tables.get("project", {}), tables.get("build-system", {})
    if project.get("name"):
        found.name, found.reasons["name"] = project["name"], "pyproject.toml, [project] name"
    found.requires_python = project.get("requires-python", "")
    found.requires = list(system.get("requires", []))
    found.backend = system.get("build-backend", "setuptools.build_meta").split(".")[0]
    found.reasons["build"] = (
        "pyproject.toml, [build-system]" if system else "no [build-system]: setuptools"
    )


def _setup_py(found: Found) -> None:
    """Keywords of setup() that are written as plain values, and what kind of extension it makes."""
    setup_cfg = configparser.ConfigParser()
    setup_cfg.read(found.root / "setup.cfg")
    if not found.name and setup_cfg.has_option("metadata", "name"):
        found.name, found.reasons["name"] = (
            setup_cfg["metadata"]["name"],
            "setup.cfg, [metadata] name",
        )
    file = found.root / "setup.py"
    if not file.is_file():
        return
    text = file.read_text(errors="replace")
    keywords = _keywords(text)
    if not found.name and isinstance(keywords.get("name"), str):
        found.name, found.reasons["name"] = keywords["name"], "setup.py, setup(name=...)"
    found.requires_python = found.requires_python or str(keywords.get("python_requires") or "")
    if re.search(r"py_limited_api[\"']?\s*[:=]\s*True|bdist_wheel.*py_limited_api", text):
        found.limited_api = True
        found.reasons["limited_api"] = "setup.py sets py_limited_api"
    if re.search(r"\bCUDAExtension\(", text):
        found.has_cuda = True
        found.reasons["cuda"] = "setup.py makes a CUDAExtension; no source is device code"


def _keywords(text: str) -> dict[str, Any]:
    """The keywords of the call of setup() whose values can be read; names are looked up at the top of the file."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return {}
    values: dict[str, Any] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            values |= {t.id: node.value.value for t in node.targets if isinstance(t, ast.Name)}
    found: dict[str, Any] = {}
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and ast.unparse(call.func).split(".")[-1] == "setup":
            for keyword in call.keywords:
                if isinstance(keyword.value, ast.Constant):
                    found[keyword.arg or ""] = keyword.value.value
                elif isinstance(keyword.value, ast.Name) and keyword.value.id in values:
                    found[keyword.arg or ""] = values[keyword.value.id]
    return found


def _sources(found: Found, top: Path) -> bool:
    """Whether there are any below `top`; what they use goes into `found`."""
    any_there = False
    for file in sorted(_files(top)):
        inside = file.relative_to(top)
        is_skipped = SKIPPED.intersection(inside.parts[:-1]) or inside.parts[0].startswith(".")
        if is_skipped or file.suffix not in SOURCES or not file.is_file():
            continue
        any_there = True
        if file.suffix == ".cu" and not found.has_device_code:
            found.has_cuda = found.has_device_code = True
            found.reasons["cuda"] = f"{inside} is CUDA code"
        if file.stat().st_size > LARGEST:
            continue
        text = file.read_text(errors="replace")
        for use, pattern in USES.items():
            if pattern.search(text):
                found.uses.setdefault(use, []).append(str(inside))
    return any_there


def _files(root: Path) -> Iterator[Path]:
    """Also those of folders beside the project that stand in it by a link; no folder twice."""
    seen = set()
    for folder, inner, names in os.walk(root, followlinks=True):
        place = os.path.realpath(folder)
        inner[:] = [name for name in inner if name not in SKIPPED and not name.startswith(".")]
        if place in seen:
            inner.clear()
            continue
        seen.add(place)
        yield from (Path(folder, name) for name in names)


def _packages(found: Found) -> None:
    """What users import: the package folder named like the distribution, else the only one."""
    packages: dict[str, str] = {}
    wanted = found.name.replace("-", "_").replace(".", "_")
    for prefix in ("", "src", *_package_folders(found.root)):
        top = found.root / prefix
        for file in sorted([*top.glob("*/__init__.py"), *top.glob("*/*/__init__.py")]):
            inside = file.parent.relative_to(top)
            in_package = (
                top / inside.parts[0] / "__init__.py"
            ).exists()  # so it is a part of that package
            name = ".".join(inside.parts)
            is_named = name.replace(".", "_") == wanted
            if len(inside.parts) == 1 or ((prefix or is_named) and not in_package):
                packages[name] = f"{file.parent.relative_to(found.root)}/"
    packages = {n: p for n, p in packages.items() if n.split(".")[0] not in NO_PACKAGES}
    named = [name for name in packages if name.replace(".", "_") == wanted]
    if wanted and named:
        found.import_name = named[0]
        found.reasons["import"] = f"the package {packages[named[0]]}"
    elif len(packages) == 1:
        ((found.import_name, place),) = packages.items()
        found.reasons["import"] = f"the only package, {place}"


def empty_submodules(root: Path) -> list[str]:
    """Those that a plain `git clone` leaves out; a build that needs their headers would fail late."""
    said = shell.capture(["git", "-C", str(root), "submodule", "status"]) or ""
    return [line.split()[1] for line in said.splitlines() if line.startswith("-")]


def _package_folders(root: Path) -> list[str]:
    """Where pyproject.toml tells setuptools to look for packages."""
    file = root / "pyproject.toml"
    tables: dict[str, Any] = tomllib.loads(file.read_text()) if file.is_file() else {}
    packages = tables.get("tool", {}).get("setuptools", {}).get("packages", {})
    where = packages.get("find", {}).get("where", []) if isinstance(packages, dict) else []
    return [str(folder) for folder in where]

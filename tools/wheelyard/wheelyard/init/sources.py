"""Examines a project by reading its files: names, build system, CUDA code, the ABIs that its sources use."""

import ast
import configparser
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

from wheelyard.core import git
from wheelyard.plan.project import pyproject

SOURCES = (".c", ".cc", ".cpp", ".cxx", ".cu", ".cuh", ".h", ".hpp", ".pyx")
TESTS = ("tests", "test")
TEST_EXTRAS = ("test", "tests", "testing")
TEST_FILES = ("test_*.py", "*_test.py")  # that pytest collects
SKIPPED = {"build", "dist", "third_party", "node_modules", "docs", "benchmarks", "wheelhouse"}
NO_PART = {*TESTS, *SKIPPED, "examples"}  # folders whose sources do not belong to the extension
NO_PACKAGES = {*NO_PART, "scripts", "csrc"}
LARGEST = 1 << 20  # bytes; a larger source is generated
# Patterns in a source that bind a wheel to an API.
USES = {
    "stable": re.compile(
        r"STABLE_TORCH_LIBRARY|torch/csrc/stable|torch/headeronly|#include\s*[<\"]opwright/"
    ),
    "torch": re.compile(
        r"#include\s*[<\"](torch/(extension|all|torch|script|library)\.h|ATen/|c10/)"
    ),
    "pybind": re.compile(r"#include\s*[<\"](pybind11/|torch/(extension|python)\.h)"),
    "python": re.compile(r"#include\s*[<\"](Python\.h|nanobind/)"),
}
# A module that CMake makes, outside any package.
CMAKE_MODULE = re.compile(
    r"^\s*(?:nanobind|pybind11|python3?)_add_\w+\(\s*(?:(\w+)|\$\{(\w+)\})", re.I | re.M
)


@dataclass
class Found:
    """Facts about a project, with their reasons; anything that its files do not tell is empty."""

    root: Path
    folder: str = ""  # the one below `root` that has the setup
    name: str = ""
    import_name: str = ""
    package: str = ""  # the folder of the imported package
    is_import_guessed: bool = False  # from the only package, which the wheel may not have
    requires_python: str = ""
    requires: list[str] = field(default_factory=list)  # requirements of its build
    setup_requires: list[str] = field(default_factory=list)  # more of them, which its code asks for
    dependencies: list[str] | None = None  # requirements at run time; None: not known
    backend: str = "setuptools"
    is_native: bool = False  # it has something to compile
    modules: list[str] = field(default_factory=list)  # the extensions that setup.py names
    has_cuda: bool = False
    calls_nvcc: bool = False  # its setup.py names torch's CUDAExtension
    has_device_code: bool = False  # CUDA sources of its own, not only calls of NVIDIA's libraries
    any_python: str = ""  # the setting that tags its wheels py3-none
    limited_api: str = ""  # the oldest Python of its limited API, as 3.10; empty: none
    uses: dict[str, list[str]] = field(default_factory=dict)  # a key of USES -> the files
    tests: list[str] = field(default_factory=list)
    test_requires: list[str] = field(default_factory=list)  # an extra or a group for the tests
    has_own_tests: bool = False  # inside the package, which users may install too
    reasons: dict[str, str] = field(default_factory=dict)

    @property
    def repository(self) -> Path:
        return self.root.parents[len(Path(self.folder).parts) - 1] if self.folder else self.root


def read(root: Path, folder: str = "") -> Found:
    """Examines a project. `folder` is the one below the repository's `root` that has the project's setup."""
    found = Found(root / folder, folder)
    root = found.root
    _pyproject(found)
    _setup(found)
    # A setup.py that drives CMake in a folder beside it has no source of its own.
    if not _sources(found, root):
        _sources(found, found.repository)
    find_package(found)
    tops = ("", "python", *_package_folders(root))
    places = [str(Path(top, name)) for top in tops for name in TESTS]
    for name in places:
        if _has_tests(root / name):
            found.tests = [name]
            found.reasons["tests"] = f"{name}/ has files that pytest takes for tests"
            return found
    if found.package and _has_tests(root / found.package):
        found.has_own_tests = True
        found.reasons["tests"] = (
            f"{found.package} has tests inside; ci/matrix.toml has a line for them"
        )
    return found


def _has_tests(folder: Path) -> bool:
    return any(any(folder.rglob(pattern)) for pattern in TEST_FILES)


def _pyproject(found: Found) -> None:
    tables = pyproject(found.root)
    project, system, tool = (tables.get(name, {}) for name in ("project", "build-system", "tool"))
    if project.get("name"):
        found.name, found.reasons["name"] = project["name"], "pyproject.toml, [project] name"
        # poetry takes its own table where [project] is silent.
        is_poetrys = "dependencies" in tool.get("poetry", {}) and "dependencies" not in project
        if "dependencies" not in project.get("dynamic", []) and not is_poetrys:
            found.dependencies = list(project.get("dependencies", []))
    take_test_extra(found, project.get("optional-dependencies", {}), "the extra")
    groups = tables.get("dependency-groups", {})
    whole = {name: list(_members(groups, name)) for name in TEST_EXTRAS if name in groups}
    take_test_extra(found, whole, "the dependency group")
    found.requires_python = project.get("requires-python", "")
    found.requires = list(system.get("requires", []))
    found.backend = system.get("build-backend", "setuptools.build_meta").split(".")[0]
    found.reasons["build"] = (
        "pyproject.toml, [build-system]" if system else "no [build-system]: setuptools"
    )
    scikit, distutils = tool.get("scikit-build", {}), tool.get("distutils", {})
    py_api = scikit.get("wheel", {}).get("py-api", "")
    _limited(found, py_api, "[tool.scikit-build] wheel.py-api")
    if py_api in ("py3", "py2.py3"):
        found.any_python = f"[tool.scikit-build] wheel.py-api is {py_api}"
    options = distutils.get("bdist_wheel", {})
    said = options.get("py-limited-api") or options.get("py_limited_api") or ""
    _limited(found, said, "[tool.distutils.bdist_wheel]")


def take_test_extra(found: Found, extras: Mapping[str, Any], what: str) -> None:
    """Takes the requirements of the tests from extras or groups, unless they are known."""
    for name in TEST_EXTRAS:
        if not found.test_requires and isinstance(texts := extras.get(name), list):
            found.test_requires = [text for text in texts if isinstance(text, str)]
            found.reasons["test_requires"] = f"{what} `{name}`"


def _members(groups: Mapping[str, Any], name: str, within: tuple[str, ...] = ()) -> Iterator[str]:
    """Yields the requirements of a dependency group and of those that it includes."""
    for text in groups.get(name, []) if name not in within else []:
        if isinstance(text, str):
            yield text
        elif isinstance(text, dict):
            yield from _members(groups, str(text.get("include-group")), (*within, name))


def _limited(found: Found, tag: str, where: str) -> None:
    """Takes the tag of a limited API, such as cp310, from one of the places where a project may name it."""
    if parts := re.fullmatch(r"(?:cp)?3(\d+)", str(tag)):
        found.limited_api, found.reasons["limited_api"] = f"3.{parts[1]}", f"{where} is {tag}"


def _setup(found: Found) -> None:
    """Reads the keywords of setup() that are plain values, and the kind of extension that it makes."""
    setup_cfg = configparser.ConfigParser()
    setup_cfg.read(found.root / "setup.cfg")
    if not found.name and setup_cfg.has_option("metadata", "name"):
        found.name, found.reasons["name"] = setup_cfg["metadata"]["name"], "setup.cfg, [metadata]"
    api = setup_cfg.get("bdist_wheel", "py_limited_api", fallback="")
    _limited(found, api, "setup.cfg's py_limited_api")
    options = dict(setup_cfg["options"]) if setup_cfg.has_section("options") else {}
    found.requires_python = found.requires_python or options.get("python_requires", "")
    needed = options.get("install_requires", "")
    if found.dependencies is None and needed and not needed.startswith("file:"):
        found.dependencies = _lines(needed)
    if setup_cfg.has_section("options.extras_require"):
        extras = {
            name: _lines(texts) for name, texts in setup_cfg["options.extras_require"].items()
        }
        take_test_extra(found, extras, "setup.cfg's extra")
    file = found.root / "setup.py"
    try:
        tree = ast.parse(file.read_text(errors="replace")) if file.is_file() else ast.parse("")
    except SyntaxError:
        return
    keywords = _keywords(tree)
    if not found.name and isinstance(keywords.get("name"), str):
        found.name, found.reasons["name"] = keywords["name"], "setup.py, setup(name=...)"
    found.requires_python = found.requires_python or str(keywords.get("python_requires") or "")
    if found.dependencies is None and isinstance(keywords.get("install_requires"), list):
        found.dependencies = [str(text) for text in keywords["install_requires"]]
    if isinstance(needs := keywords.get("setup_requires"), list):
        found.setup_requires = [str(text) for text in needs]
    if isinstance(given := keywords.get("extras_require"), dict):
        take_test_extra(found, given, "setup.py's extra")
    for node in ast.walk(tree):
        for name, value in _named_values(node):
            if name == "py_limited_api" and value.startswith("cp"):
                _limited(found, value, "setup.py's py_limited_api")
            elif name == "py_limited_api" and value == "True" and not found.limited_api:
                found.limited_api = "3.9"
                found.reasons["limited_api"] = "setup.py sets py_limited_api"
        if isinstance(node, ast.Tuple):  # as in a get_tag of bdist_wheel
            tag = [part.value for part in node.elts if isinstance(part, ast.Constant)]
            if tag[:2] == ["py3", "none"]:
                found.any_python = "setup.py gives its wheel the tag py3-none"
            elif tag[1:2] == ["abi3"]:
                _limited(found, str(tag[0]), "the Python that setup.py tags its abi3 wheel with")
        if isinstance(node, ast.Name | ast.Attribute) and ast.unparse(node).endswith(
            "CUDAExtension"
        ):
            found.calls_nvcc = True  # perhaps as Extension = CUDAExtension if ... else CppExtension
        if isinstance(node, ast.Call) and "Extension" in ast.unparse(node.func):
            found.is_native = True
            named = [*node.args[:1], *(word.value for word in node.keywords if word.arg == "name")]
            found.modules += [
                name.value
                for name in named
                if isinstance(name, ast.Constant) and isinstance(name.value, str)
            ]
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("CUDAExtension"):
            found.has_cuda = True
            found.reasons["cuda"] = "setup.py makes a CUDAExtension; no source is device code"


def _lines(text: str) -> list[str]:
    return [line for line in map(str.strip, text.splitlines()) if line and line[0] != "#"]


def _named_values(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yields the constants that a call passes by keyword or a dictionary contains, with their names."""
    pairs: list[tuple[Any, ast.expr]] = []
    if isinstance(node, ast.Call):
        pairs = [(keyword.arg, keyword.value) for keyword in node.keywords]
    elif isinstance(node, ast.Dict):
        keys = [key.value if isinstance(key, ast.Constant) else None for key in node.keys]
        pairs = list(zip(keys, node.values, strict=True))
    for name, value in pairs:
        if isinstance(value, ast.Constant):
            yield str(name), str(value.value)


def _keywords(tree: ast.Module) -> dict[str, Any]:
    """Returns the keywords of the call of setup() whose values are literals, or names of literals at the top of the
    file."""
    values = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    found: dict[str, Any] = {}
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and ast.unparse(call.func).split(".")[-1] == "setup":
            for keyword in call.keywords:
                value = keyword.value
                value = values.get(value.id, value) if isinstance(value, ast.Name) else value
                try:
                    found[keyword.arg or ""] = ast.literal_eval(value)
                except ValueError:
                    continue
    return found


def _sources(found: Found, top: Path) -> bool:
    """Whether there are any sources below `top`; the ABIs that they use are added to `found`."""
    any_there = False
    for file in sorted(_files(top)):
        inside = file.relative_to(top)
        if file.suffix not in SOURCES or not file.is_file():
            continue
        any_there = found.is_native = True
        if file.suffix == ".cu" and not found.has_device_code:
            found.has_cuda = found.has_device_code = True
            found.reasons["cuda"] = f"{inside} is CUDA code"
        if file.suffix == ".pyx":
            found.uses.setdefault("python", []).append(str(inside))
        if file.stat().st_size > LARGEST:
            continue
        text = file.read_text(errors="replace")
        for use, pattern in USES.items():
            if pattern.search(text):
                found.uses.setdefault(use, []).append(str(inside))
    return any_there


def _files(root: Path) -> Iterator[Path]:
    """Yields the files of the extension, including folders beside the project to which it has a link. Visits no folder
    twice, and none that is a project of its own."""
    seen = set()
    for folder, inner, names in os.walk(root, followlinks=True):
        place = os.path.realpath(folder)
        inner[:] = [name for name in inner if name not in NO_PART and not name.startswith(".")]
        is_another = {"pyproject.toml", "setup.py"}.intersection(names) and Path(folder) != root
        if place in seen or is_another:
            inner.clear()
            continue
        seen.add(place)
        yield from (Path(folder, name) for name in names)


def find_package(found: Found) -> None:
    """Finds the import name: the package or module named like the distribution, otherwise the only package."""
    packages: dict[str, str] = {}
    wanted = canonicalize_name(found.name).replace("-", "_")
    for prefix in ("", "src", "python", *_package_folders(found.root)):
        top = found.root / prefix
        for file in sorted([*top.glob("*/__init__.py"), *top.glob("*/*/__init__.py")]):
            inside = file.parent.relative_to(top)
            # Whether it is part of another package.
            in_package = (top / inside.parts[0] / "__init__.py").exists()
            name = ".".join(inside.parts)
            is_named = name.replace(".", "_").lower() == wanted
            if len(inside.parts) == 1 or ((prefix or is_named) and not in_package):
                packages[name] = f"{file.parent.relative_to(found.root)}/"
    packages = {n: p for n, p in packages.items() if n.split(".")[0] not in NO_PACKAGES}
    named = [name for name in packages if name.replace(".", "_").lower() == wanted]
    told = [folder for folder in _named_packages(found.root) if (found.root / folder).is_dir()]
    if wanted and named:
        found.import_name, found.package = named[0], packages[named[0]]
        found.reasons["import"] = f"the package {found.package}"
    elif made := _made_by_cmake(found.root, wanted):
        found.import_name, found.reasons["import"] = made
    elif own := [name for name in found.modules if wanted and name.lower() == wanted]:
        found.import_name, found.reasons["import"] = own[0], "the module that setup.py makes"
    elif len(told) == 1:
        found.import_name, found.package = Path(told[0]).name, f"{told[0]}/"
        found.reasons["import"] = "[tool.scikit-build] wheel.packages"
    elif len(packages) == 1:
        ((found.import_name, found.package),) = packages.items()
        found.reasons["import"] = f"the only package, {found.package}"
        found.is_import_guessed = True


def _made_by_cmake(root: Path, wanted: str) -> tuple[str, str] | None:
    """Returns the module named like the distribution, and the file that has CMake make it."""
    for file in sorted(file for file in _files(root) if file.name == "CMakeLists.txt"):
        text = file.read_text(errors="replace")
        for plain, variable in CMAKE_MODULE.findall(text):
            name = plain or f"${{{variable}}}"
            if variable and (is_set := re.search(rf'set\(\s*{variable}\s+"?([\w${{}}]+)', text)):
                name = is_set[1]
            if name.endswith("PROJECT_NAME}"):  # CMake's, or scikit-build-core's
                name = wanted
            if wanted and name.lower() == wanted:
                return name, f"the module that {file.relative_to(root)} makes"
    return None


def empty_submodules(root: Path) -> list[str]:
    """Returns the submodules that a plain `git clone` leaves empty; a build that needs their headers would fail
    late."""
    said = git.ask(root, "submodule", "status") or ""
    return [line.split()[1] for line in said.splitlines() if line.startswith("-")]


def _package_folders(root: Path) -> list[str]:
    """Returns the folders in which pyproject.toml tells setuptools to look for packages."""
    packages = pyproject(root).get("tool", {}).get("setuptools", {}).get("packages", {})
    where = packages.get("find", {}).get("where", []) if isinstance(packages, dict) else []
    return [str(folder) for folder in where]


def _named_packages(root: Path) -> list[str]:
    """Returns the folders of the packages that scikit-build-core is told to take: from a list, or a table from import
    names to folders."""
    wheel = pyproject(root).get("tool", {}).get("scikit-build", {}).get("wheel", {})
    packages = wheel.get("packages", [])
    return list(map(str, packages.values() if isinstance(packages, dict) else packages))

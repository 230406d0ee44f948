"""Defines ci/matrix.toml: the versions that a project supports, its builds, and how they are verified."""

import copy
import re
import string
import tomllib
import typing
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

from wheelyard.config.schema import Source, key, parse, read

FILE = "ci/matrix.toml"
KNOWN = Path(__file__).with_name("known.toml")
STRATEGIES = ("universal", "abi3", "each")


@dataclass(frozen=True)
class Project:
    name: str = key("The distribution's name; by default pyproject.toml's.", "")
    import_name: str = key("What users import; by default the name with `_` for `-`.", "")
    folder: str = key(
        "The folder with the project's pyproject.toml or setup.py, if it is not the repository's top folder.",
        "",
    )


@dataclass(frozen=True)
class Arch:
    runner: str = key("The GitHub runner that builds and runs its wheels.", known=True)


@dataclass(frozen=True)
class Pythons:
    versions: list[str] = key(
        "The Pythons to support; a trailing t means a free-threaded build. "
        "By default, all for which the torch releases have wheels.",
        [],
    )
    debian: dict[str, str] = key("The Debian suite that has each Python, by Python version.", {})


@dataclass(frozen=True)
class Torch:
    release: str = key("The release to build and test with, such as 2.14.1.", known=True)
    pythons: list[str] = key("The Pythons for which this torch has wheels.", known=True)
    cuda: list[str] = key(
        'Its CUDA builds to support, such as "13.0"; only "cpu" for a project without CUDA code.',
        known=True,
    )
    pypi: dict[str, str] = key("The CUDA build that PyPI has, by architecture.", {})
    index: dict[str, str] = key(
        "Where pip finds the other builds: the URL of a package index, by CUDA version.", {}
    )


@dataclass(frozen=True)
class Toolkit:
    compiler: str = key("The compiler of CUDA code.", "nvcc", ("nvcc", "clang"))
    targets: list[str] = key("GPU targets, in the notation of TORCH_CUDA_ARCH_LIST.", [])
    image: str = key(
        "A base image with this toolkit, for CUDA versions whose nvcc neither PyPI nor Debian has.",
        "",
    )


@dataclass(frozen=True)
class Universal:
    toolkit: str = key("The toolkit of the one wheel that serves every CUDA.", "12.9")
    torch: str = key(
        "The torch whose stable ABI the wheel targets; it is built with its headers.", ""
    )


@dataclass(frozen=True)
class Abi3:
    python: str = key("The oldest supported Python; the wheels are built with it.", "")


@dataclass(frozen=True)
class Each:
    toolkits: list[str] = key("The toolkits to build with; by default, every one with nvcc.", [])


@dataclass(frozen=True)
class Strategy:
    default: str = key(
        "universal: one wheel per architecture, with torch's stable ABI and without Python's C API. abi3: one per "
        "torch and CUDA, with Python's limited API. each: one per torch, CUDA and Python.",
        "each",
        STRATEGIES,
    )
    universal: Universal = key("Settings of that strategy.", Universal())
    abi3: Abi3 = key("Settings of that strategy.", Abi3())
    each: Each = key("Settings of that strategy.", Each())


@dataclass(frozen=True)
class Download:
    url: str = key("Its address, HTTP or HTTPS; redirects are followed.")
    sha256: str = key("Its sha256; other bytes are refused.")
    name: str = key("Its name in /downloads; by default, the end of the URL.", "")

    @property
    def file(self) -> str:
        return self.name or PurePosixPath(unquote(urlsplit(self.url).path)).name


@dataclass(frozen=True)
class Build:
    python: str = key("The Python that runs the build of wheels that serve every Python.", "")
    base: str = key(
        "The build image's base. pypa: the manylinux image that cibuildwheel pins, native builds only. debian: made by "
        "debootstrap, needs no image registry, can cross-compile. auto: pypa if its registry answers, otherwise "
        "debian.",
        "auto",
        ("auto", "pypa", "debian"),
    )
    source_date_epoch: int = key("The modification time of all files in a wheel.", 1580601600)
    requires: list[str] = key(
        "Packages that the build needs in addition to torch, as for pip; the image has setuptools, wheel, cmake and "
        "ninja. `-r ci/build.lock` names a file with each package's version and hashes; then nothing else is "
        "installed.",
        [],
    )
    wheels: str = key(
        "A folder of the project with wheels that the build requires and no index has. The ones that the requirements "
        "name are installed, offline and without dependencies, before the sdist and each wheel is made.",
        "",
    )
    downloads: list[Download] = key(
        "Files that the build would download. The build container has no network, "
        "so they are fetched before and mounted read-only in /downloads.",
        [],
    )
    apt: list[str] = key("Debian packages that the build needs.", [])
    before: str = key(
        "A command that runs in a copy of the sources before the sdist and before each wheel is made.",
        "",
    )
    environment: dict[str, str] = key(
        "Environment variables of the build. {arch}, {toolkit}, {compiler} and {targets} are those of the wheel. A "
        "wheel without CUDA gets only the variables without {toolkit}, {compiler} and {targets}.",
        {},
    )
    environment_cpu: dict[str, str] = key(
        "Environment variables for wheels without CUDA, which add to or replace those above.", {}
    )
    torch_dependencies: bool = key(
        "Whether torch's own dependencies are installed too: `import torch` needs them, its headers do not.",
        True,
    )
    cross: bool = key(
        "Whether the build can make wheels for another architecture, given as {arch}, than the machine's.",
        False,
    )
    job_memory_mb: int = key("The memory that one compiler may need; determines MAX_JOBS.", 2048)


@dataclass(frozen=True)
class Pypa:
    image: str = key(
        "The image's name in cibuildwheel's list, which pins it by digest.", "manylinux_2_28"
    )


@dataclass(frozen=True)
class Debian:
    suite: str = key(
        "The suite on which wheels are built; its glibc is the oldest that they support.",
        "bullseye",
    )
    native_suite: str = key(
        "The same for wheels for one torch; its g++ must support C++20, which torch's headers need since 2.13.",
        "bookworm",
    )


@dataclass(frozen=True)
class Bases:
    pypa: Pypa = key("The manylinux image.", Pypa())
    debian: Debian = key("The image made by debootstrap.", Debian())


@dataclass(frozen=True)
class Repair:
    exclude: list[str] = key(
        "Libraries that users have, which are not copied into wheels. torch's and CUDA's are always excluded.",
        [],
    )
    graft_from: list[str] = key(
        "Folders of the build image with libraries to copy into wheels.", []
    )


@dataclass(frozen=True)
class Wheels:
    variants: str = key(
        "gpu: also make a smaller variant of each wheel with CUDA code for each GPU target, for installers that "
        "support wheel variants (a draft, PEP 825). none: only the wheels.",
        "none",
        ("none", "gpu"),
    )


@dataclass(frozen=True)
class RunCell:
    torch: str = key("A torch of this file.")
    python: str = key(
        "One of its Pythons. Debian has no free-threaded one: 3.13t is compiled from the sources of Debian's 3.13."
    )
    command: str = key("The test command of this cell; by default, that of all cells.", "")
    slow: bool = key(
        "Whether a release on one machine leaves this cell out, unless `--slow` is given; workflows always run it.",
        False,
    )
    debian: bool = key(
        "Whether to use Debian's torch, which has no CUDA, of the suite that has this Python, instead of PyPI's.",
        False,
    )

    @property
    def name(self) -> str:
        return f"torch{self.torch}-python{self.python}{'-debian' if self.debian else ''}"


@dataclass(frozen=True)
class Verify:
    run: list[RunCell] = key(
        "Cells to run in fresh containers; by default, the oldest and the newest "
        "torch, each with a Python that Debian has.",
        [],
    )
    tests: list[str] = key(
        "Files and folders that the test command needs; it runs in a copy of them.", []
    )
    command: str = key(
        "The test command; by default pytest, or an import if there are no tests.", ""
    )
    requires: list[str] = key(
        "Packages that the tests need in addition to the project's own and pytest, as for pip. `-r ci/verify.lock` "
        "names a file with the version and hashes of each package, including the project's requirements; then nothing "
        "else is installed.",
        [],
    )
    apt: list[str] = key(
        "Debian packages that the tests need; {python} is the cell's. The image has no compiler, so torch.compile "
        "needs g++, openssl and libpython{python}-dev.",
        [],
    )


@dataclass(frozen=True)
class Check:
    name: str = key("The name of what is checked.")
    call: str = key("A Python expression with torch, the tensors x and y and the number n.")
    reference: str = key("An expression that gives the right answer.")
    dtypes: list[str] = key("The dtypes of x and y.", ["float32"])
    shapes: list[list[int]] = key("Their shapes.", [[0], [1], [7], [1024], [100003]])


@dataclass(frozen=True)
class Timing:
    name: str = key("The check whose call and reference are timed.")
    dtype: str = key("The dtype of x and y.", "float32")
    shape: list[int] = key("Their shape on a GPU; on a CPU it is smaller.", [268435456])
    bytes_per_element: int = key("Bytes moved for each element.", 12)


@dataclass(frozen=True)
class Smoke:
    command: str = key("A command that succeeds if the installed package works.", "")
    spec: str = key(
        "A command of the installed package that prints `checks` and `timing` as JSON.", ""
    )
    checks: list[Check] = key("Calls and the expressions that give the right answers.", [])
    timing: Timing | None = key("A call to time.", None)


@dataclass(frozen=True)
class Publish:
    upload: str = key(
        "Where twine uploads with `--index own`; {index} stands for `all`, or for an index such as cu130-torch2.15.",
        "",
    )
    simple: str = key("Where pip finds the uploaded files, with {index} in it.", "")
    gpu_evidence: list[str] = key(
        "Architectures whose wheels need evidence from a GPU before they go to a public index: `wheelyard gpu` runs "
        "the smoke test there, in the release workflow or in a cluster.",
        [],
        ("x86_64", "aarch64"),
    )
    gpu_tests: bool = key(
        "Whether that evidence must also show that the tests of [verify] passed on the GPU.", False
    )
    gpu_runner: list[str] = key(
        "Labels of the runner on which the release workflow calls `wheelyard gpu`. On a runner without a GPU that "
        "hands on the evidence committed in docs/evidence.",
        ["ubuntu-24.04"],
    )


@dataclass(frozen=True)
class Matrix:
    """The versions that a project supports, how its wheels are built, and how they are verified."""

    arch: dict[str, Arch] = key(
        "The architectures to support: x86_64, aarch64. An empty table takes the known values."
    )
    torch: dict[str, Torch] = key(
        'The torch releases to support, as [torch."2.14"]. An empty table takes the known values.'
    )
    project: Project = key("Names that pyproject.toml does not give.", Project())
    python: Pythons = key("The Pythons to support.", Pythons())
    toolkit: dict[str, Toolkit] = key('CUDA toolkits to build with, as [toolkit."13.0"].', {})
    strategy: Strategy = key("How many wheels are made.", Strategy())
    build: Build = key("How a wheel is built.", Build())
    base: Bases = key("The base of the build image.", Bases())
    repair: Repair = key("How a wheel gets its manylinux tag.", Repair())
    wheels: Wheels = key("What is made from a finished wheel.", Wheels())
    verify: Verify = key("How wheels are tested.", Verify())
    smoke: Smoke = key(
        "What is run once with each wheel, also on a GPU; by default, an import.", Smoke()
    )
    publish: Publish = key("Where and when wheels are published.", Publish())


def load(file: Path) -> Matrix:
    """Reads the matrix in `file`, completes it with what wheelyard knows, and checks every key and cross-reference."""
    tables, source = parse(file, file.name)
    matrix: Matrix = read(Matrix, with_known(tables), [], source)
    _check_references(matrix, source)
    return matrix


def with_known(tables: dict[str, Any]) -> dict[str, Any]:
    """Completes the file's tables with what wheelyard knows, and changes nothing that the file says."""
    known = tomllib.loads(KNOWN.read_text())
    full = copy.deepcopy(tables)
    for section in ("arch", "torch"):
        for name, table in _tables(full.get(section)).items():
            if isinstance(table, dict):
                full[section][name] = known[section].get(name, {}) | table
    python = full.setdefault("python", {})
    torches = _tables(full.get("torch"))
    if isinstance(python, dict):
        named = [p for t in torches.values() for p in _strings(_tables(t).get("pythons"))]
        python.setdefault("versions", sorted(set(named), key=version_key))
        python["debian"] = python.get("debian") or known["python"]["debian"]
        # Such as those that `wheelyard torch` prints; any other name is a mistake.
        every = [p for table in known["torch"].values() for p in table["pythons"]]
        unserved = [p for p in every if p not in _strings(python["versions"])]
        for table in torches.values():
            if isinstance(table, dict) and isinstance(table.get("pythons"), list):
                table["pythons"] = [p for p in table["pythons"] if p not in unserved]
    if "toolkit" not in full:
        full["toolkit"] = known["toolkit"]
    for name, table in _tables(full["toolkit"]).items():
        if isinstance(table, dict):
            full["toolkit"][name] = known["toolkit"].get(name, {}) | table
    return full


def _tables(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _strings(value: Any) -> list[str]:
    """Returns the strings in a list that has not been checked yet."""
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []


def version_key(version: str) -> tuple[int, ...]:
    """Returns a key that sorts 3.9 before 3.10 before 3.10t."""
    plain = version.rstrip("t")
    return (
        *(int(part) for part in plain.split(".") if part.isdecimal()),
        len(version) - len(plain),
    )


def with_gil(version: str) -> str:
    """Returns the version without the t of a free-threaded Python: 3.13t -> 3.13"""
    return version.rstrip("t")


def _wrong_fields(text: str) -> str:
    """Says what is wrong with the braces in a value; empty if nothing is."""
    known = ("arch", "toolkit", "compiler", "targets")
    try:
        fields = [name for _, name, _, _ in string.Formatter().parse(text) if name is not None]
    except ValueError:
        return "has a single brace; write {{ or }} for one that is meant as such"
    wrong = [name for name in fields if name not in known]
    names = ", ".join(f"{{{name}}}" for name in known)
    return f"names {{{wrong[0]}}}; it may name {names}" if wrong else ""


def _wrong_download(downloads: list[Download]) -> str:
    """Says what is wrong with the files to be fetched; empty if nothing is."""
    names: set[str] = set()
    for url, digest, download in ((d.url, d.sha256, d) for d in downloads):
        if not re.fullmatch(r"https?://[^/\s\[\]]+/\S*", url):
            return f"`{url}` is not an HTTP or HTTPS address"
        if not re.fullmatch("[0-9a-f]{64}", digest):
            return f"the sha256 of {url} is `{digest}`; it has 64 digits, 0-9 and a-f"
        if "/" in (name := download.file) or name in ("", ".", ".."):
            return f"{url} needs a file's name in /downloads, not `{name}`: give it as `name`"
        if name in names:
            return f"two files are named {name}; give one another `name`"
        names.add(name)
    return ""


def _check_references(matrix: Matrix, source: Source) -> None:
    """Checks that names used in one table exist in the other."""

    def need(name: str, names: typing.Collection[str], *path: str) -> None:
        if name not in names:
            raise source.problem(
                list(path), f"{'.'.join(path)} names `{name}`; known: {', '.join(names)}"
            )

    if not matrix.python.versions:
        raise source.problem(
            ["python", "versions"], "python.versions is empty; leave it out to serve every Python"
        )
    for table in ("environment", "environment_cpu"):
        for name, text in getattr(matrix.build, table).items():
            if problem := _wrong_fields(text):
                raise source.problem(["build", table, name], f"build.{table}.{name} {problem}")
    if problem := _wrong_download(matrix.build.downloads):
        raise source.problem(["build", "downloads"], f"build.downloads: {problem}")
    strategy = matrix.strategy
    if strategy.universal.torch:
        need(strategy.universal.torch, matrix.torch, "strategy", "universal", "torch")
    used = [strategy.universal.toolkit] if strategy.default == "universal" else []
    for toolkit in (*used, *strategy.each.toolkits):
        need(toolkit, matrix.toolkit, "strategy")
    if matrix.build.python:
        need(matrix.build.python, matrix.python.debian, "build", "python")
    for name, torch in matrix.torch.items():
        for python in torch.pythons:
            need(python, matrix.python.versions, "torch", name, "pythons")
        for cuda in torch.cuda:
            if not re.fullmatch(r"\d+\.\d+|cpu", cuda):
                raise source.problem(
                    ["torch", name, "cuda"],
                    f'torch.{name}.cuda names `{cuda}`; write it like 13.0, or "cpu"',
                )
        for cuda in torch.index:
            need(cuda, torch.cuda, "torch", name, "index")
    for cell in matrix.verify.run:
        need(cell.torch, matrix.torch, "verify", "run")
        need(cell.python, matrix.torch[cell.torch].pythons, "verify", "run")
        need(with_gil(cell.python), matrix.python.debian, "python", "debian")

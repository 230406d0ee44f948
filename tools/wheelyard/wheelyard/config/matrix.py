"""Defines ci/matrix.toml: whom a project serves, what it builds for them, and how that is verified."""

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
        "The folder of the repository that has the project's pyproject.toml or setup.py, if it is not the topmost.",
        "",
    )


@dataclass(frozen=True)
class Arch:
    runner: str = key("The GitHub runner that builds and runs its wheels.", known=True)


@dataclass(frozen=True)
class Pythons:
    versions: list[str] = key(
        "The Pythons that are served; a trailing t is a free-threaded build. "
        "By default all that the torch releases have wheels for.",
        [],
    )
    debian: dict[str, str] = key("The Debian suite whose packages have that Python.", {})


@dataclass(frozen=True)
class Torch:
    release: str = key("The release that is built with and tested on: 2.14.1.", known=True)
    pythons: list[str] = key("The Pythons that this torch has wheels for.", known=True)
    cuda: list[str] = key(
        'Its CUDA builds that are served: "13.0"; "cpu" alone for a project without CUDA code.',
        known=True,
    )
    pypi: dict[str, str] = key("The CUDA build that PyPI has, by architecture.", {})
    index: dict[str, str] = key(
        "Where pip finds the other builds: the URL of a package index, by CUDA version.", {}
    )


@dataclass(frozen=True)
class Toolkit:
    compiler: str = key("What compiles CUDA.", "nvcc", ("nvcc", "clang"))
    targets: list[str] = key("GPU targets, as TORCH_CUDA_ARCH_LIST writes them.", [])
    image: str = key(
        "A base image that brings this toolkit, for CUDA versions whose nvcc neither PyPI nor Debian has.",
        "",
    )


@dataclass(frozen=True)
class Universal:
    toolkit: str = key("The toolkit of the one wheel that serves every CUDA.", "12.9")
    torch: str = key(
        "The torch whose stable ABI the wheel targets, and on whose headers it is built.", ""
    )


@dataclass(frozen=True)
class Abi3:
    python: str = key("The oldest Python served; the wheels are built with it.", "")


@dataclass(frozen=True)
class Each:
    toolkits: list[str] = key("The toolkits to build with; by default every one with nvcc.", [])


@dataclass(frozen=True)
class Strategy:
    default: str = key(
        "universal: one wheel an architecture, on torch's stable ABI without Python's C API. abi3: one for each "
        "torch and CUDA, on Python's limited API. each: one for each torch, CUDA and Python.",
        "each",
        STRATEGIES,
    )
    universal: Universal = key("Settings of that strategy.", Universal())
    abi3: Abi3 = key("Settings of that strategy.", Abi3())
    each: Each = key("Settings of that strategy.", Each())


@dataclass(frozen=True)
class Download:
    url: str = key("Where it is, for HTTP or HTTPS; redirects are followed.")
    sha256: str = key("Its sha256; other bytes are refused.")
    name: str = key("Its name in /downloads; by default the end of the URL.", "")

    @property
    def file(self) -> str:
        return self.name or PurePosixPath(unquote(urlsplit(self.url).path)).name


@dataclass(frozen=True)
class Build:
    python: str = key("The Python that runs the build of wheels that serve every Python.", "")
    base: str = key(
        "The build image's base. pypa: the manylinux image that cibuildwheel pins, native builds only. debian: made by "
        "debootstrap, where no registry can be reached; cross-compiles. auto: pypa where its registry answers.",
        "auto",
        ("auto", "pypa", "debian"),
    )
    source_date_epoch: int = key("The time that all files of a wheel have.", 1580601600)
    requires: list[str] = key(
        "What the build needs beside torch, as pip names it; the image has setuptools, wheel, cmake and ninja. `-r "
        "ci/build.lock` names a file with the version and hashes of each package: then nothing else is installed.",
        [],
    )
    wheels: str = key(
        "A folder of the project with wheels that the build requires and no index has. Those that the requirements "
        "name are installed, offline and without dependencies, before the sdist and each wheel is made.",
        "",
    )
    downloads: list[Download] = key(
        "Files that the build would download. Its container has no network: they are fetched before, and lie in "
        "/downloads there, which cannot be written.",
        [],
    )
    apt: list[str] = key("Debian packages that the build needs.", [])
    before: str = key(
        "A command that runs in a copy of the sources before the sdist and before each wheel is made.",
        "",
    )
    environment: dict[str, str] = key(
        "What the build is told. {arch}, {toolkit}, {compiler} and {targets} are those of the wheel. A wheel without "
        "CUDA is told those that name no {toolkit}, {compiler} or {targets}.",
        {},
    )
    environment_cpu: dict[str, str] = key(
        "What a wheel without CUDA is told beside that, or in its place.", {}
    )
    torch_dependencies: bool = key(
        "Whether torch is installed with its own dependencies: `import torch` needs them, its headers do not.",
        True,
    )
    cross: bool = key(
        "Whether the build can make wheels for another architecture than the machine's, which {arch} names.",
        False,
    )
    job_memory_mb: int = key("Memory that one compiler may need; MAX_JOBS follows from it.", 2048)


@dataclass(frozen=True)
class Pypa:
    image: str = key(
        "The name in cibuildwheel's list of images pinned by digest.", "manylinux_2_28"
    )


@dataclass(frozen=True)
class Debian:
    suite: str = key(
        "The suite that wheels are built on; its glibc is the oldest they run on.", "bullseye"
    )
    native_suite: str = key(
        "The same for wheels of one torch; its g++ must know C++20, which torch's headers ask for since 2.13.",
        "bookworm",
    )


@dataclass(frozen=True)
class Bases:
    pypa: Pypa = key("The manylinux image.", Pypa())
    debian: Debian = key("The image made by debootstrap.", Debian())


@dataclass(frozen=True)
class Repair:
    exclude: list[str] = key(
        "Libraries that users have and that are never copied into a wheel; torch's and CUDA's always are excluded.",
        [],
    )
    graft_from: list[str] = key(
        "Folders of the build image where libraries to be copied in are searched.", []
    )


@dataclass(frozen=True)
class Wheels:
    variants: str = key(
        "gpu: beside each wheel with CUDA code, a smaller variant of it for each GPU target, for installers that "
        "know wheel variants (a draft, PEP 825). none: the wheels alone.",
        "none",
        ("none", "gpu"),
    )


@dataclass(frozen=True)
class RunCell:
    torch: str = key("A torch of this file.")
    python: str = key(
        "One of its Pythons. Debian has none without a GIL: 3.13t is compiled from the sources of Debian's 3.13."
    )
    command: str = key("The test command of this cell; by default that of all cells.", "")
    slow: bool = key(
        "Whether a release on one machine leaves this cell out; workflows run it, and `--slow` does.",
        False,
    )
    debian: bool = key(
        "Whether torch is not PyPI's but Debian's own package, which has no CUDA, of the suite that has this Python.",
        False,
    )

    @property
    def name(self) -> str:
        return f"torch{self.torch}-python{self.python}{'-debian' if self.debian else ''}"


@dataclass(frozen=True)
class Verify:
    run: list[RunCell] = key(
        "Cells that are run in fresh containers; by default the oldest and the newest torch, each with a Python that "
        "Debian has.",
        [],
    )
    tests: list[str] = key(
        "Files and folders that the test command needs; it starts in a copy of them.", []
    )
    command: str = key(
        "The test command; by default pytest, where there are tests, else an import.", ""
    )
    requires: list[str] = key(
        "What the tests need beside the package, as pip names it; pytest is there. `-r ci/verify.lock` names a file "
        "with the version and hashes of each package, also of those that the package needs: then nothing else is "
        "installed.",
        [],
    )
    apt: list[str] = key(
        "Debian packages that the tests need; {python} is the cell's. The image has no compiler: torch.compile needs "
        "g++, openssl and libpython{python}-dev.",
        [],
    )


@dataclass(frozen=True)
class Check:
    name: str = key("What is checked.")
    call: str = key("A Python expression over torch, the tensors x and y and the number n.")
    reference: str = key("The expression that gives the right answer.")
    dtypes: list[str] = key("The dtypes of x and y.", ["float32"])
    shapes: list[list[int]] = key("Their shapes.", [[0], [1], [7], [1024], [100003]])


@dataclass(frozen=True)
class Timing:
    name: str = key("The check whose call is timed beside its reference.")
    dtype: str = key("The dtype of x and y.", "float32")
    shape: list[int] = key("Their shape on a GPU; on a CPU it is smaller.", [268435456])
    bytes_per_element: int = key("Bytes moved for each element.", 12)


@dataclass(frozen=True)
class Smoke:
    command: str = key("A command that succeeds where the installed package works.", "")
    spec: str = key(
        "A command of the installed package that prints `checks` and `timing` as JSON.", ""
    )
    checks: list[Check] = key("Calls and the expressions that give the right answers.", [])
    timing: Timing | None = key("One call to be timed.", None)


@dataclass(frozen=True)
class Publish:
    upload: str = key(
        "Where twine uploads to with `--index own`; {index} stands for cu130-torch2.15, or for `all`.",
        "",
    )
    simple: str = key("Where pip finds what was uploaded there, with {index} in it.", "")
    gpu_evidence: list[str] = key(
        "Architectures whose wheels are run on a GPU: the smoke test is, by `wheelyard gpu`, in the release workflow "
        "or in a cluster. Without that evidence they do not leave for a public index.",
        [],
        ("x86_64", "aarch64"),
    )
    gpu_tests: bool = key(
        "Whether that evidence must also say that the tests of [verify] passed on the GPU, by its command.",
        False,
    )
    gpu_runner: list[str] = key(
        "Labels of the runner on which the release workflow calls `wheelyard gpu`. Without a GPU that hands on the "
        "evidence committed in docs/evidence, which somebody made in a notebook or on another machine.",
        ["ubuntu-24.04"],
    )


@dataclass(frozen=True)
class Matrix:
    """Whom a project serves, what it builds for them, and how that is verified."""

    arch: dict[str, Arch] = key(
        "The architectures served: x86_64, aarch64. An empty table takes what is known."
    )
    torch: dict[str, Torch] = key(
        'The torch releases served, as [torch."2.14"]. An empty table takes what is known.'
    )
    project: Project = key("Names, where they do not follow from pyproject.toml.", Project())
    python: Pythons = key("The Pythons served.", Pythons())
    toolkit: dict[str, Toolkit] = key('CUDA toolkits to build with, as [toolkit."13.0"].', {})
    strategy: Strategy = key("How many wheels are made.", Strategy())
    build: Build = key("How a wheel is built.", Build())
    base: Bases = key("What the build image is made from.", Bases())
    repair: Repair = key("How a wheel gets its manylinux tag.", Repair())
    wheels: Wheels = key("What is made of a wheel when it has its tag.", Wheels())
    verify: Verify = key("How wheels are tested.", Verify())
    smoke: Smoke = key(
        "What is run once with each wheel, on a GPU too; by default it is imported.", Smoke()
    )
    publish: Publish = key("What may be published.", Publish())


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
        for cuda in torch.index:
            need(cuda, torch.cuda, "torch", name, "index")
    for cell in matrix.verify.run:
        need(cell.torch, matrix.torch, "verify", "run")
        need(cell.python, matrix.torch[cell.torch].pythons, "verify", "run")
        need(with_gil(cell.python), matrix.python.debian, "python", "debian")

"""Plans a release: the project, its matrix, the wheels to make, and where their jobs can run."""

import dataclasses
import itertools
import os
import platform
import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path, PurePath
from typing import Any

from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import InvalidVersion, Version

from wheelyard.config import matrix as matrix_file
from wheelyard.config.matrix import Matrix, RunCell, version_key
from wheelyard.core import digest
from wheelyard.plan import project as project_facts
from wheelyard.plan import torch_lock
from wheelyard.plan.cells import (
    Cell,
    Variant,
    Wheel,
    cells,
    cuda_name,
    cuda_of_run,
    python_tag,
    run_cells,
    split_label,
    wheels,
)
from wheelyard.plan.project import Project
from wheelyard.plan.torch_lock import Pins
from wheelyard.problem import Problem

INDEXES = ("embedded", "own", "testpypi", "pypi")
PLACES = ("here", "github")
# The toolkits whose nvcc is on PyPI, and those whose nvcc is Debian's, by the files that pin them.
TOOLKITS = Path(__file__).resolve().parent.parent / "docker/toolkits"
PYPI_TOOLKITS = sorted(f.stem for f in TOOLKITS.glob("*.lock") if f.stem >= "13")
DEBIAN_TOOLKITS = sorted(f.stem for f in TOOLKITS.glob("*.deb"))
# How a cell may be verified, and what each word claims.
WAYS = {
    "run": "the wheel is installed in a fresh container with this torch and Python, and the tests pass",
    "linked": "every symbol that the wheel needs is found in this cell's own torch wheel",
    "same ABI": "the wheel is linked with this torch for another Python, whose C++ libraries have the same sources",
    "inferred": "nothing of this cell is run or linked; `wheelscope cover` finds that a wheel serves it",
}


@dataclass(frozen=True)
class TorchBuild:
    """A build of torch, as pip is told to install it."""

    release: str
    index: str  # empty: PyPI
    requirement: str  # the release, with its hashes if it is pinned
    requirements: str  # that, followed by a line for each package that it needs


@dataclass(frozen=True)
class Options:
    """The choices that a person has for one run."""

    strategy: str | None = None
    base: str | None = None
    wanted: tuple[str, ...] = ()  # patterns of wheels' names; empty: all
    index: str = "embedded"
    # The folder of the index, and the address of the files if they are elsewhere.
    site: Path | None = None
    address: str = ""
    place: str = "here"
    # What a cluster's machines have: architectures, "gpu"; or this machine: "gpu".
    offered: tuple[str, ...] = ()
    slow: bool = False  # also run the cells that the matrix calls slow
    cache: Path | None = None  # a compiler cache for trial builds; releases use none


@dataclass(frozen=True)
class Plan:
    project: Project
    matrix: Matrix
    options: Options = field(default_factory=Options)
    machine: str = field(default_factory=platform.machine)
    torch_pins: Pins = field(default_factory=dict)  # empty: no torch is pinned

    def asked(self, **choices: Any) -> "Plan":
        """Returns the plan for a person with other choices."""
        return dataclasses.replace(self, options=dataclasses.replace(self.options, **choices))

    def edited(self, **tables: dict[str, Any]) -> "Plan":
        """Returns the plan of a matrix with other keys in some tables, as in edited(build={"cross": True}). A table of
        tables, such as torch, is replaced."""
        old = vars(self.matrix)
        new: dict[str, Any] = {
            name: keys if isinstance(old[name], dict) else dataclasses.replace(old[name], **keys)
            for name, keys in tables.items()
        }
        return dataclasses.replace(self, matrix=dataclasses.replace(self.matrix, **new))

    @property
    def strategy(self) -> str:
        return self.options.strategy or self.matrix.strategy.default

    @property
    def cells(self) -> list[Cell]:
        return cells(self.matrix)[0]

    def rows(self, arch: str) -> Iterator[tuple[str, str, dict[str, Cell]]]:
        """Yields the rows of an architecture's table of cells: each torch and CUDA, with its cells by their Python."""
        of_arch = [cell for cell in self.cells if cell.arch == arch]
        of_arch.sort(key=lambda cell: (version_key(cell.torch), cell.cuda))
        for (torch, cuda), row in itertools.groupby(of_arch, lambda cell: (cell.torch, cell.cuda)):
            yield torch, cuda, {cell.python: cell for cell in row}

    @property
    def left_out(self) -> dict[str, int]:
        return cells(self.matrix)[1]

    @property
    def all_wheels(self) -> list[Wheel]:
        return wheels(self.matrix, self.strategy)

    @property
    def buildable(self) -> list[Wheel]:
        """The wheels for which there is a machine and an image."""
        return [wheel for wheel in self.all_wheels if not self.why_not(wheel)]

    def why_not(self, wheel: Wheel) -> str:
        """Returns why a wheel cannot be built; empty if it can."""
        if wheel.arch not in self.machines and (wheel.torch or not self.matrix.build.cross):
            return f"{wheel.arch} is built on a machine of its own: --place github, or --cluster with one"
        base = self.options.base or self.matrix.build.base
        has_every_python = base == "pypa" or (base == "auto" and self.options.place == "github")
        python = wheel.python or self.build_python
        if python in self.matrix.python.debian:
            return ""
        if self.has_debian_nvcc(wheel):
            return f"Debian has the nvcc of CUDA {wheel.toolkit}, but no Python {python}: name an image with both"
        return "" if has_every_python else f"Debian has no Python {python}: use --base pypa"

    def has_debian_nvcc(self, wheel: Wheel) -> bool:
        """Whether a wheel is compiled by Debian's nvcc. That needs Debian's g++, as the manylinux image's is too
        new."""
        return (
            wheel.torch is not None
            and wheel.toolkit in DEBIAN_TOOLKITS
            and not self.matrix.toolkit[wheel.toolkit].image
        )

    @property
    def wheels(self) -> list[Wheel]:
        """The wheels that were asked for."""
        patterns = self.options.wanted or ("*",)
        every = self.buildable
        found = [w for w in every if any(fnmatchcase(w.name, p) for p in patterns)]
        if not found:
            names = ", ".join(wheel.name for wheel in (every or self.all_wheels)[:3])
            raise Problem(
                f"no wheel of the plan is named {', '.join(patterns)}; names are like {names}"
            )
        return found

    @property
    def downloads(self) -> dict[str, list[str]]:
        """The URL and sha256 of each file that a build is given, by its name in the container."""
        return {d.file: [d.url, d.sha256] for d in self.matrix.build.downloads}

    @property
    def test_command(self) -> str:
        """The command that runs pytest if there are tests, otherwise an import. Other files that the tests need do not
        count."""
        if self.matrix.verify.command:
            return self.matrix.verify.command
        named = self.matrix.verify.tests
        if folders := shlex.join(n for n in named if PurePath(n).suffix in ("", ".py")):
            return f"python -m pytest -q --durations=5 -p no:cacheprovider {folders}"
        name = self.project.import_name
        return f"""python -c 'import torch, {name}; print("{name} was imported; there are no tests")'"""

    @property
    def gpu_tests(self) -> dict[str, str] | None:
        """The tests that GPU evidence must include, by their command and the digest of their files; None if it need
        not."""
        if not self.matrix.publish.gpu_tests:
            return None
        files = self.project.files(*self.matrix.verify.tests) if self.matrix.verify.tests else {}
        plain = {
            p: d.removesuffix(digest.EXECUTABLE) for p, d in files.items() if digest.LINK not in d
        }
        return {"command": self.test_command, "files": digest.of(plain)}

    def variants(self, wheel: Wheel) -> list[Variant]:
        """Returns the variants of a wheel: one for each GPU target of its build."""
        if self.matrix.wheels.variants == "none" or wheel.toolkit is None:
            return []
        targets = self.targets(wheel).split()
        gpus = [re.fullmatch(r"(\d+\.\d)[af]?(\+PTX)?", target) for target in targets]
        if not all(gpus) or not gpus:
            raise Problem(
                f"{matrix_file.FILE} asks for a variant for each GPU target, but those of {wheel.name} are "
                f"`{' '.join(targets)}`; name them by their numbers:\n"
                f'  [toolkit."{wheel.toolkit}"]\n  targets = ["8.0", "9.0+PTX"]'
            )
        return [Variant(wheel, gpu) for gpu in dict.fromkeys(found[1] for found in gpus if found)]

    @property
    def uploaded(self) -> list[str]:
        """The jobs whose files an index accepts: the sdist's, and each wheel's final one."""
        return ["build/sdist", *(f"repair/{wheel.name}" for wheel in self.wheels)]

    @property
    def released(self) -> list[str]:
        """The jobs whose files are released: the uploaded ones, and the variants, which no index accepts yet."""
        return [
            *self.uploaded,
            *(f"repair/{v.name}" for w in self.wheels for v in self.variants(w)),
        ]

    def owners(self, file: str) -> list[str]:
        """Returns the jobs that may make a released file of this name, which tells its version, torch, Python and
        CPU."""
        file, label = split_label(file)
        try:
            is_wheel = file.endswith(".whl")
            name, version, *_, tags = (
                parse_wheel_filename(file) if is_wheel else (*parse_sdist_filename(file), ())
            )
        except (InvalidWheelFilename, InvalidSdistFilename, InvalidVersion):
            return []
        said = self.project.version
        is_other_version = said and version.public != Version(said).public
        if name != canonicalize_name(self.project.name) or is_other_version:
            return []
        if not is_wheel:
            return ["build/sdist"]
        return [
            f"repair/{made.name}"
            for wheel in self.wheels
            for made in (self.variants(wheel) if label else [wheel])
            if label in ("", getattr(made, "label", ""))
            and wheel.local_version == (version.local or "")
            and all(tag.platform.endswith(f"_{wheel.arch}") for tag in tags)
            and (
                wheel.python is None
                or {tag.abi for tag in tags} <= {"none", "abi3", python_tag(wheel.python)}
            )
        ]

    def check_owners(self, job: str, paths: Iterable[str]) -> None:
        """Checks that released files are named for the job that made them: the name decides what pip installs and which
        evidence is required."""
        for path in paths:
            file = path.rpartition("/")[2]
            if job not in (owners := self.owners(file)):
                whose = f"it would be {', '.join(owners)}'s" if owners else "no job of this plan is"
                raise Problem(f"{job} may not leave a file named {file}; {whose}")

    @property
    def machines(self) -> tuple[str, ...]:
        """The architectures that jobs can run on: this machine's, or those that have runners."""
        if self.options.place == "here":
            return (self.machine,)
        if self.options.place == "cluster":
            return tuple(arch for arch in self.matrix.arch if arch in self.options.offered)
        named = os.environ.get("WHEELYARD_MACHINES")
        return tuple(named.split()) if named else tuple(self.matrix.arch)

    def builder(self, arch: str) -> str:
        """Returns the architecture of the machine that builds a wheel: the wheel's own if there is such a machine."""
        if arch in self.machines or self.machine in self.machines or not self.machines:
            return arch if arch in self.machines else self.machine
        return self.machines[0]

    def has_step(self, step: str) -> bool:
        """Whether a step that only some machines can do is part of this plan."""
        return self.options.place == "github" or step in self.options.offered

    @property
    def natives(self) -> list[Wheel]:
        """The wheels that can be run."""
        return [wheel for wheel in self.wheels if wheel.arch in self.machines]

    @property
    def runs_slow(self) -> bool:
        """Whether slow cells are run; on GitHub each has a runner of its own."""
        return self.options.slow or self.options.place == "github"

    def cells_run(self, wheel: Wheel, *, debian: bool = False) -> list[RunCell]:
        """Returns the cells to run that a wheel serves, including those with Debian's torch if `debian` is set."""
        return [
            cell
            for cell in run_cells(self.matrix, slow=self.runs_slow)
            if debian >= cell.debian
            and wheel.torch in (None, cell.torch)
            and wheel.python in (None, cell.python)
            and wheel.cuda in (None, self.cuda_of(cell, wheel.arch))
        ]

    def cuda_of(self, cell: RunCell, arch: str) -> str | None:
        """Returns the CUDA of the torch that a cell is run with."""
        return "cpu" if cell.debian else cuda_of_run(self.matrix, cell.torch, arch)

    def links(self, wheel: Wheel) -> list[str]:
        """Returns the torches that a wheel is linked with. A wheel that is run beside its only torch needs no link."""
        if wheel.torch and wheel in self.natives and self.cells_run(wheel):
            return []
        torches = [wheel.torch] if wheel.torch else list(self.matrix.torch)
        here = [cuda_of_run(self.matrix, torch, wheel.arch) for torch in torches]
        return [t for t, cuda in zip(torches, here, strict=True) if wheel.cuda in (None, cuda)]

    def linked_python(self, wheel: Wheel, torch: str) -> str:
        """Returns the Python of the torch wheel that a wheel is linked with: its own, or one that stands for all."""
        pythons = self.matrix.torch[torch].pythons
        common = self.build_python if self.build_python in pythons else pythons[0]
        return wheel.python or common

    def way(self, cell: Cell) -> str:
        """Returns how a cell will be verified: run, linked, same ABI or inferred, as WAYS explains them."""
        runs = run_cells(self.matrix, slow=self.runs_slow)
        if cell.arch in self.machines and (cell.cuda, cell.torch, cell.python) in [
            (self.cuda_of(r, cell.arch), r.torch, r.python) for r in runs
        ]:
            return "run"
        if cuda_of_run(self.matrix, cell.torch, cell.arch) != cell.cuda:
            return "inferred"
        (wheel,) = (wheel for wheel in self.all_wheels if wheel.serves(cell))
        return "linked" if cell.python == self.linked_python(wheel, cell.torch) else "same ABI"

    def lacks(self, wheel: Wheel) -> str:
        """Returns what the matrix must say before the image of a wheel can be made; empty if it can."""
        if not wheel.torch:
            return ""
        torch, toolkit = self.matrix.torch[wheel.torch], wheel.toolkit
        is_run = cuda_of_run(self.matrix, wheel.torch, wheel.arch) == wheel.cuda
        if not is_run and wheel.cuda not in torch.index:
            theirs = cuda_name(torch.pypi.get(wheel.arch, "none"))
            return (
                f"PyPI's torch {wheel.torch} for {wheel.arch} is {theirs}, not {cuda_name(str(wheel.cuda))}; take "
                f'it out of cuda in [torch."{wheel.torch}"], or say there where pip finds it:\n'
                f'  index = {{ "{wheel.cuda}" = "URL" }}'
            )
        if not toolkit or self.matrix.toolkit[toolkit].image or toolkit in PYPI_TOOLKITS:
            return ""
        image = f'name an image that has it, with Pythons in /opt/python:\n  [toolkit."{toolkit}"]\n  image = "..."'
        if self.has_debian_nvcc(wheel):
            base = self.options.base or self.matrix.build.base
            return (
                f"Debian's nvcc {toolkit} needs --base debian; or {image}" if base == "pypa" else ""
            )
        near = [name for name in DEBIAN_TOOLKITS if name.split(".")[0] == toolkit.split(".")[0]]
        other = (
            f"""rename its table to [toolkit."{near[-1]}"], Debian's nvcc, or """ if near else ""
        )
        return f"PyPI has no nvcc of CUDA {toolkit}; {other}{image}"

    def targets(self, wheel: Wheel) -> str:
        """Returns the GPU targets that a build is given: its toolkit's, unless the environment names others."""
        if wheel.toolkit is None:
            return ""
        toolkit = " ".join(self.matrix.toolkit[wheel.toolkit].targets)
        told = self.matrix.build.environment.get("TORCH_CUDA_ARCH_LIST", "{targets}")
        return told.replace("{targets}", toolkit).replace(";", " ")

    def torch_build(self, torch: str, arch: str, cuda: str | None = None) -> TorchBuild:
        """Returns the build of a torch for this CUDA; if none is given, the build that its cells run with."""
        cuda = cuda or cuda_of_run(self.matrix, torch, arch)
        facts = self.matrix.torch[torch]
        index = facts.index.get(cuda or "", "") if facts.pypi.get(arch) != cuda else ""
        pins = {} if index else self.torch_pins  # pins are for PyPI's files alone
        alone, whole = (
            torch_lock.requirements(facts.release, pins, alone=alone) for alone in (True, False)
        )
        return TorchBuild(facts.release, index, alone, whole)

    @property
    def build_python(self) -> str:
        """The Python that runs the builds of wheels that serve every Python."""
        given = self.matrix.strategy.abi3.python if self.strategy == "abi3" else ""
        return given or self.matrix.build.python or next(iter(self.matrix.python.debian))


def load(options: Options, root: Path | None = None) -> Plan:
    """Returns the plan of the project in `root`, by default the one that the current folder is in."""
    root = root or project_facts.find()
    matrix = matrix_file.load(root / matrix_file.FILE)
    said = matrix.project
    project = project_facts.load(root, said.name, said.import_name, said.folder)
    return Plan(project, matrix, options, torch_pins=torch_lock.load(root))

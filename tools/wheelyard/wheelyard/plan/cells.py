"""Lists the cells, and the fewest wheels that cover them under each strategy."""

import itertools
import re
from dataclasses import dataclass

from wheelyard.config.matrix import FILE, Matrix, RunCell, version_key
from wheelyard.problem import Problem


@dataclass(frozen=True)
class Cell:
    """The combination that one user has."""

    arch: str
    cuda: str
    torch: str
    python: str


@dataclass(frozen=True)
class Wheel:
    """A wheel to be made. `torch`, `cuda` and `python` are None if it serves all of them."""

    arch: str
    toolkit: str | None
    torch: str | None = None
    cuda: str | None = None
    python: str | None = None

    @property
    def name(self) -> str:
        parts = (self.arch, self.local_version, python_tag(self.python) if self.python else "")
        return "-".join(part for part in parts if part)

    @property
    def local_version(self) -> str:
        """The wheel's local version: cu130torch2.15; empty for a wheel that serves every torch."""
        return f"{cuda_name(self.cuda)}torch{self.torch}" if self.cuda and self.torch else ""

    @property
    def index_name(self) -> str:
        """The index for wheels of this torch and CUDA; empty for a wheel that serves every torch."""
        return index_name(self.local_version)

    def serves(self, cell: Cell) -> bool:
        wanted = ((self.torch, cell.torch), (self.cuda, cell.cuda), (self.python, cell.python))
        return self.arch == cell.arch and all(ours in (None, theirs) for ours, theirs in wanted)


@dataclass(frozen=True)
class Variant:
    """A wheel with the device code for one GPU target alone. Installers give it to that GPU and to later ones of the
    same major version, unless a nearer variant exists; all others get the wheel itself."""

    wheel: Wheel
    gpu: str  # its compute capability: 9.0

    @property
    def label(self) -> str:
        """The end of the file's name: sm90."""
        return "sm" + self.gpu.replace(".", "")

    @property
    def name(self) -> str:
        return f"{self.wheel.name}-{self.label}"


def split_label(file: str) -> tuple[str, str]:
    """Returns the name of the wheel that a file is a variant of, and its label; empty for a plain wheel."""
    label = re.search(r"-(sm\d+)\.whl$", file)
    return (f"{file[: label.start()]}.whl", label[1]) if label else (file, "")


def python_tag(version: str) -> str:
    """Returns the tag of a Python: 3.14t -> cp314t"""
    return "cp" + version.replace(".", "")


def cuda_name(cuda: str) -> str:
    """Returns a CUDA version as names contain it: 13.0 -> cu130, cpu -> cpu"""
    return cuda if cuda == "cpu" else "cu" + cuda.replace(".", "")


def index_name(local_version: str) -> str:
    """Returns the name of an index: cu130torch2.15 -> cu130-torch2.15"""
    return local_version.replace("torch", "-torch", 1)


def index_of_file(name: str) -> str:
    """Returns the index that a file belongs to by its local version; empty for an sdist and a wheel for every torch."""
    return index_name(name.split("-")[1].partition("+")[2]) if name.endswith(".whl") else ""


def cells(matrix: Matrix) -> tuple[list[Cell], dict[str, int]]:
    """Returns all combinations that exist, and the number of those that do not, by reason."""
    found: list[Cell] = []
    left_out: dict[str, int] = {}
    cudas = sorted({cuda for torch in matrix.torch.values() for cuda in torch.cuda})
    for name, torch in matrix.torch.items():
        for arch, cuda, python in itertools.product(matrix.arch, cudas, matrix.python.versions):
            if python not in torch.pythons:
                reason = f"torch {name} has no wheel for Python {python}"
            elif cuda not in torch.cuda:
                reason = f"torch {name} is not served with {cuda_name(cuda)}"
            else:
                found.append(Cell(arch, cuda, name, python))
                continue
            left_out[reason] = left_out.get(reason, 0) + 1
    return found, left_out


def wheels(matrix: Matrix, strategy: str) -> list[Wheel]:
    """Returns the wheels of a strategy; every cell is served by exactly one."""
    existing, _ = cells(matrix)
    if strategy == "universal":
        toolkit = matrix.strategy.universal.toolkit
        if toolkit not in matrix.toolkit:
            raise Problem(f"no toolkit {toolkit} in the matrix; it has {', '.join(matrix.toolkit)}")
        return [Wheel(arch, toolkit) for arch in matrix.arch]
    bound = strategy == "each"
    made = (
        Wheel(c.arch, toolkit_for(matrix, c.cuda), c.torch, c.cuda, c.python if bound else None)
        for c in existing
    )
    return list(dict.fromkeys(made))


def toolkit_for(matrix: Matrix, cuda: str) -> str | None:
    """Returns the toolkit for a torch's CUDA: the newest of its major version that is not newer, otherwise the oldest
    of that major version."""
    if cuda == "cpu":
        return None
    every = [name for name, facts in matrix.toolkit.items() if facts.compiler == "nvcc"]
    allowed = matrix.strategy.each.toolkits or every
    same = sorted((t for t in allowed if t.split(".")[0] == cuda.split(".")[0]), key=version_key)
    if not same:
        of = ", ".join(name for name, torch in matrix.torch.items() if cuda in torch.cuda)
        raise Problem(
            f"{FILE}: there is no toolkit for CUDA {cuda}, which the table of torch {of} names; there are "
            f"{', '.join(allowed)}"
        )
    fitting = [t for t in same if version_key(t) <= version_key(cuda)]
    return fitting[-1] if fitting else same[0]


def run_cells(matrix: Matrix, *, slow: bool = True) -> list[RunCell]:
    """Returns the cells to run: those that the matrix names, or the oldest and the newest torch."""
    if matrix.verify.run:
        return [cell for cell in matrix.verify.run if slow or not cell.slow]
    torches = sorted(matrix.torch, key=version_key)
    chosen = []
    for torch in dict.fromkeys((torches[0], torches[-1])):
        pythons = [p for p in matrix.torch[torch].pythons if p in matrix.python.debian]
        if pythons:
            chosen.append(RunCell(torch, pythons[0]))
    return chosen


def cuda_of_run(matrix: Matrix, torch: str, arch: str) -> str | None:
    """Returns the CUDA of the torch that a cell runs with: PyPI's, which pip installs, or "cpu" for wheels without CUDA
    code.

    A project without CUDA code says `cuda = ["cpu"]`: its wheels run beside any build of their torch.
    """
    facts = matrix.torch[torch]
    theirs = facts.pypi.get(arch)
    return "cpu" if theirs not in facts.cuda and "cpu" in facts.cuda else theirs

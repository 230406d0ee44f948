"""Plan: which cells exist, which build serves each, and where each is verified."""

import itertools
import json
import platform
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from ci.errors import Problem
from ci.matrix import Matrix


@dataclass(frozen=True)
class Cell:
    """What one user has."""

    arch: str
    cuda: str
    torch: str
    python: str


@dataclass(frozen=True)
class WheelBuild:
    """One wheel to be made. `torch`, `cuda` and `python` are None where it serves all of them."""

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
        """The wheel's local version: cu130torch2.15; none for a wheel that serves every torch."""
        return f"{cuda_name(self.cuda)}torch{self.torch}" if self.cuda and self.torch else ""

    @property
    def toolkit_name(self) -> str:
        """The toolkit and the CPU it compiles for, as in the image: 12.9-x86_64."""
        return f"{self.toolkit}-{self.arch}"

    def serves(self, cell: Cell) -> bool:
        wanted = ((self.torch, cell.torch), (self.cuda, cell.cuda), (self.python, cell.python))
        return self.arch == cell.arch and all(ours in (None, theirs) for ours, theirs in wanted)


@dataclass(frozen=True)
class Plan:
    strategy: str
    cells: list[Cell]
    left_out: dict[str, int]
    builds: list[WheelBuild]


def python_tag(version: str) -> str:
    """3.14t -> cp314t"""
    return "cp" + version.replace(".", "")


def cuda_name(cuda: str) -> str:
    """13.0 -> cu130, cpu -> cpu"""
    return cuda if cuda == "cpu" else "cu" + cuda.replace(".", "")


def make(matrix: Matrix, strategy: str | None = None, toolkit: str | None = None) -> Plan:
    """The plan of the whole matrix; raises if a cell is served by no build."""
    strategy = strategy or matrix.strategy.default
    cells, left_out = _cells(matrix)
    if strategy == "universal":
        toolkit = toolkit or matrix.strategy.universal.toolkit
        if toolkit not in matrix.toolkit:
            raise Problem(f"no toolkit {toolkit} in the matrix; it has {', '.join(matrix.toolkit)}")
        builds = [WheelBuild(arch, toolkit) for arch in matrix.arch]
    elif strategy == "each":
        builds = [_own_build(matrix, cell) for cell in cells]
    else:
        raise Problem(f"unknown strategy `{strategy}`; it is universal or each")
    for cell in cells:
        if not any(build.serves(cell) for build in builds):
            raise Problem(f"no build serves {cell}")
    return Plan(strategy, cells, left_out, builds)


def _cells(matrix: Matrix) -> tuple[list[Cell], dict[str, int]]:
    """All combinations that exist, and the number of those that do not by reason."""
    cells: list[Cell] = []
    left_out: dict[str, int] = {}
    cudas = sorted({cuda for torch in matrix.torch.values() for cuda in torch.cuda})
    for name, torch in matrix.torch.items():
        for arch, cuda, python in itertools.product(matrix.arch, cudas, matrix.python.versions):
            if python not in torch.pythons:
                reason = f"torch {name} has no wheel for Python {python}"
            elif cuda not in torch.cuda:
                reason = f"torch {name} has no {cuda_name(cuda)} build"
            else:
                cells.append(Cell(arch, cuda, name, python))
                continue
            left_out[reason] = left_out.get(reason, 0) + 1
    return cells, left_out


def _own_build(matrix: Matrix, cell: Cell) -> WheelBuild:
    """The build for one cell alone: the toolkit of the same CUDA major."""
    toolkits = [
        t for t in matrix.strategy.each.toolkits if t.split(".")[0] == cell.cuda.split(".")[0]
    ]
    if cell.cuda != "cpu" and not toolkits:
        raise Problem(
            f"strategy.each has no toolkit for CUDA {cell.cuda}; add one to ci/matrix.toml"
        )
    toolkit = None if cell.cuda == "cpu" else toolkits[0]
    return WheelBuild(cell.arch, toolkit, cell.torch, cell.cuda, cell.python)


def verified_by(matrix: Matrix, cell: Cell, machine: str | None) -> str:
    """How a cell is verified on `machine` (an architecture; None: on native runners of each)."""
    torch = matrix.torch[cell.torch]
    if torch.pypi.get(cell.arch) != cell.cuda:
        return "cover"
    runnable = machine in (None, cell.arch)
    listed = any((run.torch, run.python) == (cell.torch, cell.python) for run in matrix.verify.run)
    return "run" if runnable and listed else "link"


def show(matrix: Matrix, plan: Plan, console: Console) -> None:
    """The plan as tables for people."""
    builds = Table(title=f"{len(plan.builds)} wheels, strategy {plan.strategy}")
    for column in ("build", "toolkit", "compiler", "GPU targets", "cells served"):
        builds.add_column(column)
    for build in plan.builds:
        toolkit = matrix.toolkit[build.toolkit] if build.toolkit else None
        served = sum(build.serves(cell) for cell in plan.cells)
        targets = " ".join(toolkit.targets) if toolkit else "-"
        compiler = toolkit.compiler if toolkit else "g++"
        builds.add_row(build.name, build.toolkit or "-", compiler, targets, str(served))
    console.print(builds)

    machine = platform.machine()
    grid = Table(title=f"{len(plan.cells)} cells; how this {machine} machine verifies each")
    for column in ("arch", "torch", "CUDA"):
        grid.add_column(column)
    for python in matrix.python.versions:
        grid.add_column(python)
    for (arch, torch, cuda), row in itertools.groupby(
        sorted(plan.cells, key=lambda c: (c.arch, int(c.torch.split(".")[1]), c.cuda)),
        key=lambda c: (c.arch, c.torch, c.cuda),
    ):
        how = {cell.python: verified_by(matrix, cell, machine) for cell in row}
        grid.add_row(arch, torch, cuda, *(how.get(p, "") for p in matrix.python.versions))
    console.print(grid)
    console.print(
        "run: installed and tested in a fresh container. link: every symbol resolved against that\n"
        "torch's wheel on PyPI. cover: served by the same library, judged by `wheelscope cover`."
    )
    console.print(f"\nLeft out, {sum(plan.left_out.values())} combinations that do not exist:")
    for reason, count in plan.left_out.items():
        console.print(f"  {count:3} x {reason}")


def github(matrix: Matrix, plan: Plan) -> str:
    """The job matrices of the workflow: builds, run cells and links, each on a native runner.

    `name` is for people, `wheel` and `task` are what `python -m ci` is told.
    """
    builds = [
        {"name": build.name, "arch": build.arch, "runner": matrix.arch[build.arch].runner}
        for build in plan.builds
    ]
    verify = []
    for arch, facts in matrix.arch.items():
        units = {
            f"torch {cell.torch}, Python {cell.python}": f"torch{cell.torch}-python{cell.python}"
            for cell in matrix.verify.run
        }
        units["link to every torch"] = "torch*-link"
        verify += [
            {"name": f"{arch}, {name}", "arch": arch, "runner": facts.runner,
             "wheel": f"{arch}*", "task": f"{arch}*-{unit}"}
            for name, unit in units.items()
        ]  # fmt: skip
    return json.dumps({"build": {"include": builds}, "verify": {"include": verify}})

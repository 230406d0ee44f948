"""The plan as tables for people: what is built, which cells it serves, how each is verified."""

import itertools

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from wheelyard.config.matrix import version_key
from wheelyard.plan.cells import verified_by
from wheelyard.plan.plan import Plan

SHOWN = 12  # wheels that are listed one by one


def show(plan: Plan, console: Console) -> None:
    _wheels(plan, console)
    _grid(plan, console)
    console.print(
        "run: installed and tested in a fresh container. link: every symbol resolved against that\n"
        "torch's wheel on PyPI. cover: served by the same library, judged by `wheelscope cover`."
    )
    if plan.left_out:
        console.print(f"\nLeft out, {sum(plan.left_out.values())} combinations that do not exist:")
    for reason, count in plan.left_out.items():
        console.print(f"  {count:3} x {reason}")


def _wheels(plan: Plan, console: Console) -> None:
    wheels = plan.wheels
    table = Table(title=f"{len(wheels)} wheels, strategy {plan.strategy}")
    for column in ("wheel", "toolkit", "compiler", "GPU targets", "cells served"):
        table.add_column(column)
    for wheel in wheels[:SHOWN]:
        toolkit = plan.matrix.toolkit[wheel.toolkit] if wheel.toolkit else None
        served = sum(wheel.serves(cell) for cell in plan.cells)
        targets = " ".join(toolkit.targets) if toolkit else "-"
        compiler = toolkit.compiler if toolkit else "g++"
        table.add_row(wheel.name, wheel.toolkit or "-", compiler, targets, str(served))
    console.print(table)
    if left := len(plan.all_wheels) - len(plan.buildable):
        console.print(
            f"{left} wheels of other architectures are built on runners of theirs (--place github)"
        )
    if len(wheels) > SHOWN:
        counts = {arch: sum(w.arch == arch for w in wheels) for arch in plan.matrix.arch}
        each = ", ".join(f"{count} for {arch}" for arch, count in counts.items())
        console.print(f"... and {len(wheels) - SHOWN} more: {each}")


def _grid(plan: Plan, console: Console) -> None:
    machines = ", ".join(plan.machines)
    title = f"{len(plan.cells)} cells; how machines of {machines} verify each"
    grid = Table(title=title, box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    pythons = plan.matrix.python.versions
    for column in ("arch", "torch", "CUDA", *pythons):
        grid.add_column(column)
    for (arch, torch, cuda), row in itertools.groupby(
        sorted(plan.cells, key=lambda c: (c.arch, version_key(c.torch), c.cuda)),
        key=lambda c: (c.arch, c.torch, c.cuda),
    ):
        how = {cell.python: verified_by(plan.matrix, cell, plan.machines) for cell in row}
        grid.add_row(arch, torch, cuda, *(how.get(python, "") for python in pythons))
    console.print(grid)

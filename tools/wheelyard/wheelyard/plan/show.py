"""Prints the plan as tables: what is built, which cells it covers, how each is verified."""

from collections import Counter
from statistics import median

from rich.console import Console
from rich.table import Table

from wheelyard.config.matrix import version_key
from wheelyard.plan import requirements
from wheelyard.plan.plan import WAYS, Plan
from wheelyard.problem import counted

# Short forms of WAYS for the grid.
SHORT = {"run": "run", "linked": "link", "same ABI": "ABI", "inferred": "inf"}
SHOWN = 12  # how many wheels are listed one by one


def show(
    plan: Plan,
    console: Console,
    took: dict[str, float] | None = None,
    sizes: dict[str, int] | None = None,
) -> None:
    """Prints the plan. `took` has the seconds of jobs that ran before, by name, and `sizes` the bytes of the file that
    each made."""
    _wheels(plan, console)
    _variants(plan, console, sizes or {})
    if loose := requirements.by_name_alone(plan):
        console.print(
            f"Installed into images without hashes: {', '.join(loose)}; `requires` and ci/torch.lock take hashes too.",
            markup=False,
        )
    console.print(how_long(plan, took or {}))
    _grid(plan, console)
    counts = Counter(map(plan.way, plan.cells))
    for way in filter(counts.__getitem__, WAYS):
        console.print(f"{counts[way]:4} {way} ({SHORT[way]}): {WAYS[way]}")
    if plan.left_out:
        console.print(f"\nLeft out, {counted(sum(plan.left_out.values()), 'combination')}:")
    for reason, count in plan.left_out.items():
        console.print(f"  {count:3} x {reason}")


def _wheels(plan: Plan, console: Console) -> None:
    wheels = plan.wheels
    table = Table(title=f"{counted(len(wheels), 'wheel')}, strategy {plan.strategy}")
    table.add_column("wheel", no_wrap=True)  # people copy this name
    for column in ("toolkit", "compiler", "GPU targets", "cells served"):
        table.add_column(column, overflow="fold")
    for wheel in wheels[:SHOWN]:
        toolkit = plan.matrix.toolkit[wheel.toolkit] if wheel.toolkit else None
        served = sum(wheel.serves(cell) for cell in plan.cells)
        targets = plan.targets(wheel) or "-"
        compiler = toolkit.compiler if toolkit else "g++"
        table.add_row(wheel.name, wheel.toolkit or "-", compiler, targets, str(served))
    console.print(table)
    reasons = Counter(filter(None, map(plan.why_not, plan.all_wheels)))
    for reason, count in reasons.items():
        console.print(f"  {count:3} more not built here; {reason}")
    for lack, count in Counter(filter(None, map(plan.lacks, wheels))).items():
        console.print(
            f"{counted(count, 'wheel')} cannot be made yet: {lack}", style="bold", markup=False
        )
    if len(wheels) > SHOWN:
        counts = {arch: sum(w.arch == arch for w in wheels) for arch in plan.matrix.arch}
        each = ", ".join(f"{count} for {arch}" for arch, count in counts.items())
        console.print(f"... and {len(wheels) - SHOWN} more: {each}")


def _variants(plan: Plan, console: Console, sizes: dict[str, int]) -> None:
    """Prints which variant each GPU gets, and its size if it has been made."""
    if not any(map(plan.variants, plan.wheels)):
        return
    table = Table(title="what installers that know variants take")
    for column in ("wheel", "variant", "GPUs", "MB"):
        table.add_column(column, no_wrap=True)
    for wheel in plan.wheels[:SHOWN]:
        for variant in plan.variants(wheel):
            nearer = [v.gpu for v in plan.variants(wheel) if _is_later(v.gpu, variant.gpu)]
            until = f" to before {min(nearer, key=version_key)}" if nearer else " and later"
            gpus = f"{variant.gpu}{until} of {variant.gpu.split('.')[0]}.x"
            table.add_row(wheel.name, variant.label, gpus, _megabytes(sizes, variant.name))
        table.add_row(wheel.name, "none", "any other, or none", _megabytes(sizes, wheel.name))
    console.print(table)


def _is_later(gpu: str, than: str) -> bool:
    return gpu.split(".")[0] == than.split(".")[0] and version_key(gpu) > version_key(than)


def _megabytes(sizes: dict[str, int], name: str) -> str:
    return f"{size / 1e6:.2f}" if (size := sizes.get(f"repair/{name}")) else "not made yet"


def how_long(plan: Plan, took: dict[str, float]) -> str:
    """Returns an estimate of the time of all builds, from those that were measured."""
    builds = [s for name, s in took.items() if name.startswith("build/") and name != "build/sdist"]
    if not builds:
        first = plan.wheels[0].name
        return f"How long is not known yet: `wheelyard build --wheel {first}` builds one and measures it."
    minutes = max(1, round(len(plan.wheels) * median(builds) / 60))
    return (
        f"About {counted(minutes, 'minute')} of building, one after the other: {counted(len(plan.wheels), 'wheel')} "
        f"of {median(builds):.0f} s, the median of {len(builds)} that were built here."
    )


def _grid(plan: Plan, console: Console) -> None:
    """Prints a grid per architecture, with a row for each torch and CUDA and a column for each Python."""
    console.print(
        f"\n{counted(len(plan.cells), 'cell')}; how machines of {', '.join(plan.machines)} verify each:"
    )
    pythons = plan.matrix.python.versions
    for arch in plan.matrix.arch:
        grid = Table(box=None, padding=(0, 1, 0, 0))
        for column in (arch, "CUDA", *pythons):
            grid.add_column(column)
        for torch, cuda, row in plan.rows(arch):
            how = {python: SHORT[plan.way(cell)] for python, cell in row.items()}
            grid.add_row(torch, cuda, *(how.get(python, "") for python in pythons))
        console.print(grid)

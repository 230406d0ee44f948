"""Shows the plan: as tables in a terminal, and as a page for users in Markdown."""

from collections import Counter
from collections.abc import Iterator

from rich.console import Console
from rich.table import Table

from wheelyard.config import policy
from wheelyard.config.matrix import version_key
from wheelyard.plan import requirements
from wheelyard.plan.cells import run_cells
from wheelyard.plan.plan import WAYS, Plan
from wheelyard.problem import counted

# Short forms of WAYS for the grid.
SHORT = {"run": "run", "linked": "link", "same ABI": "ABI", "inferred": "inf"}
SHOWN = 12  # how many wheels are listed one by one


def show(plan: Plan, console: Console, sizes: dict[str, int] | None = None) -> None:
    """Prints what is built, which cells it covers, and how each is verified. `sizes` has the bytes of the file that a
    job made before, by the job's name."""
    _wheels(plan, console)
    _variants(plan, console, sizes or {})
    if loose := requirements.by_name_alone(plan):
        console.print(
            f"Installed into images without hashes: {', '.join(loose)}; `requires` and ci/torch.lock take hashes too.",
            markup=False,
        )
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
            major = variant.gpu.split(".")[0]
            alike = [v.gpu for v in plan.variants(wheel) if v.gpu.split(".")[0] == major]
            later = [gpu for gpu in alike if version_key(gpu) > version_key(variant.gpu)]
            until = f" to before {min(later, key=version_key)}" if later else " and later"
            gpus = f"{variant.gpu}{until} of {major}.x"
            table.add_row(wheel.name, variant.label, gpus, _megabytes(sizes, variant.name))
        table.add_row(wheel.name, "none", "any other, or none", _megabytes(sizes, wheel.name))
    console.print(table)


def _megabytes(sizes: dict[str, int], name: str) -> str:
    return f"{size / 1e6:.2f}" if (size := sizes.get(f"repair/{name}")) else "not made yet"


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


# --- For users ------------------------------------------------------------------------------------


def page(plan: Plan) -> str:
    """Returns the plan as a page for users: what is supported, and how that is known."""
    counts = Counter(map(plan.way, plan.cells))
    lines = [
        "# What is supported",
        "",
        f"{len(plan.cells)} combinations of processor, torch, CUDA and Python, and how a release knows that its wheel "
        "works with each:",
        "",
        "| word | combinations | what it claims |",
        "|---|---:|---|",
        *(f"| {way} | {counts[way]} | {WAYS[way]} |" for way in WAYS if counts[way]),
        "",
        *_machine(plan),
        "",
        "A trailing `t` is a Python without the GIL; `cpu` is a torch without CUDA.",
        *(
            f"Torch {run.torch} without CUDA is run on Python {run.python} as Debian builds it."
            for run in run_cells(plan.matrix, slow=plan.runs_slow)
            if run.debian
        ),
    ]
    for arch in plan.matrix.arch:
        lines += ["", f"## {arch}", "", f"| torch | CUDA | {' | '.join(WAYS)} |"]
        lines += [f"|---|---|{'---|' * len(WAYS)}", *_rows(plan, arch)]
    return "\n".join([*lines, ""])


def _machine(plan: Plan) -> Iterator[str]:
    """Yields what a machine must have, from the targets of the build and from the policy."""
    targets = " ".join(dict.fromkeys(t for w in plan.wheels for t in plan.targets(w).split()))
    if targets and any(cell.cuda != "cpu" for cell in plan.cells):
        ptx = [target.removesuffix("+PTX") for target in targets.split() if "+PTX" in target]
        native = targets.replace("+PTX", "").replace(" ", ", ")
        yield f"- GPUs: native code for compute capability {native}" + (
            f"; PTX {' and '.join(ptx)}, which the driver compiles for others and newer ones."
            if ptx
            else "."
        )
    file = plan.project.root / policy.FILE
    rules = policy.load(file) if file.is_file() else policy.Policy()
    if rules.cuda.driver:
        yield f"- Driver: {rules.cuda.driver} or newer."
    system = rules.platform.highest
    if system.startswith("manylinux_"):
        yield f"- C library: glibc {'.'.join(system.split('_')[1:])} or newer (`{system}`)."


def _rows(plan: Plan, arch: str) -> Iterator[str]:
    for torch, cuda, row in plan.rows(arch):
        of_way: dict[str, list[str]] = {way: [] for way in WAYS}
        for python, cell in row.items():
            of_way[plan.way(cell)].append(python)
        pythons = (", ".join(sorted(of_way[way], key=version_key)) for way in WAYS)
        yield f"| {torch} | {cuda} | {' | '.join(pythons)} |"

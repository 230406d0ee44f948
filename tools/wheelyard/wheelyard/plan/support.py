"""Writes the plan as a page for users: what is supported, and how that is known."""

from collections import Counter
from collections.abc import Iterator

from wheelyard.config import policy
from wheelyard.config.matrix import version_key
from wheelyard.plan.cells import run_cells
from wheelyard.plan.plan import WAYS, Plan


def page(plan: Plan) -> str:
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

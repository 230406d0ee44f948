"""Collects the report's data: the findings for each file, and how each cell is known to be covered."""

from dataclasses import dataclass, field
from pathlib import Path

from wheelyard.config.matrix import RunCell
from wheelyard.core.record import Facts, Record
from wheelyard.plan.cells import Cell, cuda_of_run
from wheelyard.plan.plan import WAYS as CLAIMS
from wheelyard.plan.plan import Plan
from wheelyard.problem import Problem
from wheelyard.steps import smoke
from wheelyard.tools import evidence, sbom, wheelscope

# How a cell may have been verified: the label in the grid, and its meaning.
WAYS = {
    "gpu": ("on GPU", "the ops ran on a GPU with this torch, CUDA and Python"),
    **{way.replace(" ", "-"): (way, claim) for way, claim in CLAIMS.items()},
    "failed": ("FAILED", "a check of this cell failed"),
    "open": ("not yet", "nothing has verified it yet"),
}


@dataclass(frozen=True)
class File:
    """One file of the release; a wheel also has what wheelscope, its SBOM and GPUs tell about it."""

    path: Path
    sha256: str
    seen: Facts | None = None
    linked_in: list[str] = field(default_factory=list)
    on_gpu: list[Facts] = field(default_factory=list)


def files(plan: Plan, record: Record) -> list[File]:
    """Returns the files that exist; a step that failed has left none."""
    found = []
    for name in plan.released:
        try:
            ((path, digest),) = record.outputs(name).items()
        except Problem:
            continue
        file = record.folder / path
        if file.suffix == ".whl":
            ran = on_gpu(plan, record, path, digest)
            found.append(File(file, digest, _seen(file), sbom.linked_in(file), ran))
        else:
            found.append(File(file, digest))
    return found


def _seen(wheel: Path) -> Facts | None:
    try:
        return wheelscope.show(wheel)
    except Problem:
        return None


def evidence_files(plan: Plan, record: Record) -> list[Path]:
    """Returns the committed evidence, and the evidence that jobs have handed on."""
    handed = (record.folder / "evidence").glob("*.json")
    return [*(plan.project.root / evidence.FOLDER).glob("*.json"), *handed]


def on_gpu(plan: Plan, record: Record, path: str, wheel: str) -> list[Facts]:
    """Returns the GPU evidence about the wheel of this name and sha256."""
    tests = [job.name for job in smoke.jobs(plan)]
    passed = [n for n in tests if record.jobs.get(n, {}).get("verdict") == "passed"]
    try:
        spec = evidence.spec_of(record.files(*passed))
    except Problem:  # the required checks are not known
        return []
    told = smoke.spec(plan) | {"gpu_tests": plan.gpu_tests}
    wanted = evidence.wanted(told, plan.matrix.torch, Path(path).name, wheel, spec)
    return evidence.judged(wanted, evidence_files(plan, record))[0]


def grid(plan: Plan, record: Record) -> dict[Cell, str]:
    """Returns how each cell was verified: a key of WAYS."""
    ran_on_gpu = {
        (wheel.name, *evidence.cell(seen))
        for wheel in plan.all_wheels
        for made in record.jobs.get(f"repair/{wheel.name}", {"outputs": {}})["outputs"].items()
        for seen in on_gpu(plan, record, *made)
    }
    return {cell: _way(plan, record, cell, ran_on_gpu) for cell in plan.cells}


def _way(plan: Plan, record: Record, cell: Cell, ran_on_gpu: set[tuple[str, ...]]) -> str:
    """Returns the strongest proof that the record has for a cell; a failure outweighs every proof."""
    (wheel,) = (wheel for wheel in plan.all_wheels if wheel.serves(cell))
    name = wheel.name
    verdicts = {job: entry["verdict"] for job, entry in record.jobs.items()}
    if (made := verdicts.get(f"repair/{name}")) != "passed":
        return "failed" if made == "failed" else "open"
    is_on_pypi = cuda_of_run(plan.matrix, cell.torch, cell.arch) == cell.cuda
    run = RunCell(cell.torch, cell.python, debian=cell.cuda == "cpu" and not is_on_pypi)
    ran = verdicts.get(f"verify/{name}-{run.name}") if is_on_pypi or run.debian else None
    linked = verdicts.get(f"verify/{name}-torch{cell.torch}-link") if is_on_pypi else None
    covered = verdicts.get("gate/cover")
    if "failed" in (verdicts.get(f"gate/{name}"), covered, ran, linked):
        return "failed"
    if (name, cell.arch, cell.torch, cell.python, cell.cuda) in ran_on_gpu:
        return "gpu"
    if ran == "passed":
        return "run"
    if linked == "passed":
        return "linked" if cell.python == plan.linked_python(wheel, cell.torch) else "same-ABI"
    return "inferred" if covered == "passed" else "open"

"""Collects the report's data: the findings for each file, how each cell is known to be covered, and which jobs delayed
the end."""

from contextlib import suppress
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

PAUSE = 60.0  # seconds without a job: someone stopped the release, and continued it later
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
            ran, seen = on_gpu(plan, record, path, digest), None
            with suppress(Problem):
                seen = wheelscope.show(file)
            found.append(File(file, digest, seen, sbom.linked_in(file), ran))
        else:
            found.append(File(file, digest))
    return found


def on_gpu(plan: Plan, record: Record, path: str, wheel: str) -> list[Facts]:
    """Returns the evidence, committed or made by a job, about the wheel of this name and sha256."""
    tests = [job.name for job in smoke.jobs(plan)]
    passed = [n for n in tests if record.jobs.get(n, {}).get("verdict") == "passed"]
    try:
        spec = evidence.spec_of(record.files(*passed))
    except Problem:  # the required checks are not known
        return []
    told = smoke.spec(plan) | {"gpu_tests": plan.gpu_tests}
    wanted = evidence.wanted(told, plan.matrix.torch, Path(path).name, wheel, spec)
    places = (plan.project.root / evidence.FOLDER, record.folder / "evidence")
    return evidence.judged(wanted, [file for f in places for file in f.glob("*.json")])[0]


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


# --- When jobs ran --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stay:
    """A job's time on a machine, in seconds since the first job began; pauses are left out."""

    job: str
    machine: str
    began: float
    ended: float


def stays(record: Record) -> list[Stay]:
    """Returns the times of the passed jobs whose start and machine are known, in the order in which they began."""
    ran = [(n, e["facts"]["ran"], e["seconds"]) for n, e in record.jobs.items() if _is_known(e)]
    found: list[Stay] = []
    shift, end = 0.0, 0.0
    for name, where, seconds in sorted(ran, key=lambda item: item[1]["began"]):
        began = where["began"]
        if not found:
            shift = began
        elif began - shift - end > PAUSE:
            shift = began - end
        found.append(Stay(name, str(where["machine"]), began - shift, began - shift + seconds))
        end = max(end, found[-1].ended)
    return found


def _is_known(entry: Facts) -> bool:
    ran = entry["facts"].get("ran")
    return isinstance(ran, dict) and isinstance(ran.get("began"), int | float) and "machine" in ran


def bounding(record: Record, known: list[Stay]) -> list[Stay]:
    """Returns the jobs that the end waited for: each began when the one before it was over, or when there was room."""
    if not known:
        return []
    by_name = {stay.job: stay for stay in known}
    chain = [max(known, key=lambda stay: stay.ended)]
    while True:
        before = [by_name[name] for name in after(record, chain[0].job) if name in by_name]
        before = [stay for stay in before if stay not in chain]
        if not before:
            return chain
        chain.insert(0, max(before, key=lambda stay: stay.ended))


def after(record: Record, name: str) -> set[str]:
    """Returns the jobs that a job got its inputs from."""
    makers = {path: job for job, entry in record.jobs.items() for path in entry["outputs"]}
    keys = {
        key
        for value in record.jobs[name]["inputs"].values()
        if isinstance(value, dict)
        for key in value
    }
    return {makers.get(key, key) for key in keys if key in makers or key in record.jobs} - {name}

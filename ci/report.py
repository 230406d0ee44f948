"""Report: wheelhouse/report.html, what was made, what it serves and how each claim is known.

The page is made from the record alone, also where steps failed or have not run. Beside it lies a
static package index, so that the whole wheelhouse can be served from any web server.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ci import evidence, page, sbom, static_index
from ci.errors import Problem
from ci.matrix import Matrix
from ci.plan import Cell
from ci.project import ROOT
from ci.release import Release
from ci.state import Facts, Result, Task
from ci.verify import WHEELSCOPE

BENCHMARKS = ROOT / "docs/bench"


@dataclass(frozen=True)
class File:
    """One file of the release; for a wheel, what wheelscope, its SBOM and GPUs saw of it."""

    path: Path
    sha256: str
    seen: Facts | None = None
    linked_in: list[str] = field(default_factory=list)
    on_gpu: list[Facts] = field(default_factory=list)


def tasks(release: Release) -> list[Task]:
    def write(_: Path) -> Result:
        made = files(release)
        target = release.folder() / "report.html"
        target.write_text(page.render(release, made, grid(release), benchmarks()))
        paths = [file.path for file in made]
        index = static_index.write(release.wheelhouse / "simple", release.project.name, paths)
        return Result([target, *index.iterdir()])

    done = {
        name: [record["verdict"], record["inputs"]]
        for name, record in release.state.tasks.items()
        if name != "report"
    }
    return [Task("report", "", {"tasks": done}, write)]


def files(release: Release) -> list[File]:
    """The files that there are; a step that failed has left none."""
    found = []
    for name in ("sdist", *(build.name for build in release.builds)):
        try:
            step = "build" if name == "sdist" else "repair"
            (path,) = release.state.outputs(f"{step}/{name}")
        except Problem:
            continue
        digest = release.sha256(name)
        if path.suffix == ".whl":
            seen = sbom.look_into(path) if WHEELSCOPE.exists() else None
            found.append(File(path, digest, seen, sbom.linked_in(path), evidence.on_gpu(digest)))
        else:
            found.append(File(path, digest))
    return found


def grid(release: Release) -> dict[Cell, str]:
    """How each cell was verified: a key of page.WAYS."""
    return {cell: _way(release, cell) for cell in release.plan.cells}


def _way(release: Release, cell: Cell) -> str:
    """The strongest proof that the record has for a cell; a failure outweighs them all."""
    (build,) = (build for build in release.plan.builds if build.serves(cell))
    name = build.name
    verdicts = {task: record["verdict"] for task, record in release.state.tasks.items()}
    if (made := verdicts.get(f"repair/{name}")) != "passed":
        return "failed" if made == "failed" else "open"
    ran = verdicts.get(f"verify/{name}-torch{cell.torch}-python{cell.python}")
    linked = verdicts.get(f"verify/{name}-torch{cell.torch}-link")
    is_on_pypi = _on_pypi(release.matrix, cell)
    covered = verdicts.get("gate/cover")
    if "failed" in (verdicts.get(f"gate/{name}"), covered):
        return "failed"
    if is_on_pypi and "failed" in (ran, linked):
        return "failed"
    if any(_same_cell(seen, cell) for seen in evidence.on_gpu(release.sha256(name))):
        return "gpu"
    if is_on_pypi and ran == "passed":
        return "run"
    if is_on_pypi and linked == "passed":
        return "linked"
    return "covered" if covered == "passed" else "open"


def _on_pypi(matrix: Matrix, cell: Cell) -> bool:
    """Is this CUDA build of torch the one that was installed or linked against?"""
    return matrix.torch[cell.torch].pypi.get(cell.arch) == cell.cuda


def _same_cell(seen: Facts, cell: Cell) -> bool:
    torch, python = ".".join(seen["torch"].split(".")[:2]), ".".join(seen["python"].split(".")[:2])
    return (seen["machine"], torch, python, seen["torch_cuda"]) == (
        cell.arch, cell.torch, cell.python, cell.cuda,
    )  # fmt: skip


def benchmarks() -> dict[str, Any]:
    """The committed measurements of the ops over many sizes, by file name."""
    results = {
        file.stem: json.loads(file.read_text()) for file in sorted(BENCHMARKS.glob("*.json"))
    }
    return {
        name: result
        for name, result in results.items()
        if len({row["elements"] for row in result.get("bandwidth", [])}) > 2
    }

"""Writes the report: what was made, what it covers, and how each claim is known. Plain static HTML, readable without
colour, JavaScript or a wide screen.

It is made from the record alone, even if steps failed or have not run.
"""

import re
import shutil
from collections import Counter
from collections.abc import Iterable
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from packaging.utils import canonicalize_name

from wheelyard.core.record import Record
from wheelyard.plan.cells import Cell
from wheelyard.plan.plan import Plan
from wheelyard.problem import counted
from wheelyard.report import facts as known
from wheelyard.report.facts import WAYS, File
from wheelyard.steps import STEPS
from wheelyard.tools import evidence, static_index

TEMPLATE = Path(__file__).with_name("report.html")


def write(plan: Plan, record: Record) -> Path:
    """Writes report.html and the static index into the release folder; returns the page's path."""
    files = known.files(plan, record)
    target = record.folder / "report.html"
    record.folder.mkdir(parents=True, exist_ok=True)
    target.write_text(render(plan, record, files, known.grid(plan, record)))
    # Pages of another release of this project; those of other projects stay.
    for old in [*(record.folder / "simple").rglob(canonicalize_name(plan.project.name))]:
        shutil.rmtree(old)
    static_index.append(record.folder, plan.project.name, [file.path for file in files])
    return target


def render(plan: Plan, record: Record, files: list[File], grid: dict[Cell, str]) -> str:
    """Returns the whole page."""
    head = record.head
    project, version = plan.project.name, plan.project.version or _version(files)
    return Template(TEMPLATE.read_text()).substitute(
        title=escape(f"{project} {version}"),
        commit=escape(re.sub(r"\+$", " with uncommitted changes", head.get("commit", "unknown"))),
        strategy=escape(plan.strategy),
        verdict=_verdict(record),
        files="\n".join(map(_file, files)) or "<p>No file has been made yet.</p>",
        served=_legend(grid) + "\n".join(_arch_grid(plan, grid, a) for a in plan.matrix.arch),
        findings=_findings(record, files),
        jobs=_bounded(record) + _jobs(record),
    )


def _version(files: list[File]) -> str:
    """Returns the version from a file's name: some projects have theirs only in a build."""
    return next((f.path.name.split("-")[1] for f in files if f.path.suffix == ".whl"), "")


def _failed(record: Record) -> list[str]:
    return [name for name, job in record.jobs.items() if job["verdict"] == "failed"]


def _verdict(record: Record) -> str:
    tasks = list(record.jobs)
    failed = _failed(record)
    if failed:
        names = ", ".join(f"<code>{escape(name)}</code>" for name in failed)
        return f'<p class="verdict failed"><strong>{len(failed)} of {len(tasks)} jobs FAILED:</strong> {names}</p>'
    if not any(name.startswith("publish/") for name in tasks):
        done = {name.split("/")[0] for name in tasks}
        begun = [number for number, step in enumerate(STEPS, 1) if step in done]
        left = ", ".join(STEPS[max(begun, default=0) :])
        return f'<p class="verdict open"><strong>Not published yet:</strong> {len(tasks)} jobs passed; still to come: {left}.</p>'  # noqa: E501
    jobs = counted(len(tasks), "job")
    return f'<p class="verdict run"><strong>Passed:</strong> all {jobs}.</p>'


def _file(file: File) -> str:
    facts = {"size": f"{file.path.stat().st_size:,} bytes", "sha256": f"<code>{file.sha256}</code>"}
    if file.seen:
        cuda, torch = file.seen["cuda"], file.seen["torch_abi"]
        facts["platform"] = escape(str(file.seen["platform_tag"]))
        facts["torch ABI"] = escape(f"{torch['kind']}, from torch {torch['min']}")
        if cuda["sass"] or cuda["ptx"]:
            facts["GPU targets"] = escape(
                f"native code for {', '.join(cuda['sass'])}; PTX for {', '.join(cuda['ptx'])}"
            )
            runtime = f"{cuda['runtime']} {cuda['runtime_version'] or ''}; driver from {cuda['min_driver']}"
            facts["CUDA runtime"] = escape(runtime)
        facts["SBOM"] = escape(", ".join(file.linked_in) or "names nothing")
        facts["run on a GPU"] = "<br>".join(map(_on_gpu, file.on_gpu)) or "not these bytes"
    rows = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in facts.items())
    link = escape(file.path.name.replace("+", "%2B"))
    title = f'<h3><a href="{link}">{escape(file.path.name)}</a></h3>'
    return f"<article>{title}<dl>{rows}</dl></article>"


def _on_gpu(seen: dict[str, Any]) -> str:
    """Returns the results of a wheel on a GPU machine, in one line."""
    gpu, timing = seen["gpu"], seen.get("timing", {}).get("cuda", {})
    speeds = [f"{op} {v:,.0f} GB/s" for op, v in timing.get("gigabytes_per_second", {}).items()]
    where = f"{gpu['name']}, driver {gpu['driver']}, torch {seen['torch']}"
    counts = {"checks": evidence.checks(seen), "tests": (seen.get("tests") or {}).get("passed", 0)}
    passed = [f"{count} {what} passed" for what, count in counts.items() if count]
    return escape("; ".join([where, *passed, *speeds]))


def _code(text: str) -> str:
    """Marks up text between backticks as code."""
    return re.sub("`(.+?)`", r"<code>\1</code>", escape(text))


def _legend(grid: dict[Cell, str]) -> str:
    counts = Counter(grid.values())
    rows = "".join(
        f'<tr><td><span class="key {way}">{label}</span></td>'
        f'<td class="number">{counts[way]}</td><td>{_code(meaning)}</td></tr>'
        for way, (label, meaning) in WAYS.items()
    )
    caption = f"{counted(len(grid), 'cell')}, by the strongest proof of each"
    return _table("How cells were verified", caption, ("label", "cells", "means"), rows)


def _arch_grid(plan: Plan, grid: dict[Cell, str], arch: str) -> str:
    """Returns the table of one architecture: a row for each torch and CUDA, a column for each Python."""
    pythons = plan.matrix.python.versions
    rows = []
    last = ""
    for torch, cuda, row in plan.rows(arch):
        first, last = torch != last, torch
        ways = {python: grid[cell] for python, cell in row.items()}
        boxes = "".join(_box(ways.get(python)) for python in pythons)
        heads = f'<th scope="row">{torch}</th><th scope="row">{cuda}</th>'
        rows.append(f'<tr class="{"first" if first else ""}">{heads}{boxes}</tr>')
    caption, columns = f"{arch}: torch and CUDA by Python", ("torch", "CUDA", *pythons)
    body = f' class="grid" id="grid-{arch}"'
    return _table(f"Grid of {arch}", caption, columns, "".join(rows), body=body)


def _box(way: str | None) -> str:
    return f'<td class="{way}">{WAYS[way][0]}</td>' if way else "<td>-</td>"


def _findings(record: Record, files: list[File]) -> str:
    parts = []
    for name in _failed(record):
        error = escape(str(record.jobs[name]["facts"].get("error", "")))
        parts.append(f"<h3>{escape(name)} failed</h3><pre>{error}</pre>")
    for file in files:
        for finding in (file.seen or {}).get("findings", []):
            text = escape(finding.get("message", str(finding)))
            parts.append(f"<p><code>{escape(file.path.name)}</code>: {text}</p>")
    return (
        "\n".join(parts)
        or "<p>None: every check that ran has passed, and wheelscope found nothing.</p>"
    )


def _bounded(record: Record) -> str:
    """Returns a sentence on what delayed the end; empty if it is not known when and where jobs ran."""
    stays = known.stays(record)
    if not stays:
        return ""
    chain = known.bounding(record, stays)
    names = ", ".join(f"<code>{escape(s.job)}</code> ({s.ended - s.began:.0f} s)" for s in chain)
    busy = sum(stay.ended - stay.began for stay in chain)
    return (
        f"<p>{max(stay.ended for stay in stays):.0f} s in all. The end waited for {names}: {busy:.0f} s; the rest of "
        "the time the next of them waited for a machine, or for its step.</p>"
    )


def _jobs(record: Record) -> str:
    """Returns the table of all jobs, those whose start is known in that order."""
    began = {stay.job: stay for stay in known.stays(record)}
    rows = []
    for name in [*began, *(name for name in record.jobs if name not in began)]:
        task, stay = record.jobs[name], began.get(name)
        result = str(task["facts"].get("verdict") or task["facts"].get("error", ""))
        way = "run" if task["verdict"] == "passed" else "failed"
        rows.append(
            f'<tr><th scope="row">{escape(name)}</th><td class="{way}">{task["verdict"]}</td>'
            f'<td class="number">{f"{stay.began:.0f} s" if stay else ""}</td>'
            f'<td class="number">{task["seconds"]:.1f} s</td><td>{escape(stay.machine if stay else "")}</td>'
            f"<td>{escape(result[:300])}</td></tr>"
        )
    columns = ("job", "verdict", "began", "took", "machine", "result")
    table = _table("All jobs", "All jobs", columns, "".join(rows))
    return f"<details><summary>All {len(rows)} jobs</summary>{table}</details>"


def _table(label: str, caption: str, columns: Iterable[str], rows: str, *, body: str = "") -> str:
    """Returns a table that scrolls by itself on a narrow screen, with the keyboard too."""
    head = "".join(f'<th scope="col">{name}</th>' for name in columns)
    return (
        f'<div class="scroll" role="region" aria-label="{escape(label)}" tabindex="0">'
        f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody{body}>{rows}</tbody></table></div>"
    )

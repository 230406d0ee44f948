"""Writes build/release/report.html, what was made, what it serves and how each claim is known, and the static index.

The page is made from the record alone, also where steps failed or have not run.
"""

from pathlib import Path

from wheelyard.core.record import Record
from wheelyard.plan.plan import Plan
from wheelyard.report import facts, page, static_index


def write(plan: Plan, record: Record) -> Path:
    """The page's path."""
    files = facts.files(plan, record)
    target = record.folder / "report.html"
    record.folder.mkdir(parents=True, exist_ok=True)
    target.write_text(page.render(plan, record, files, facts.grid(plan, record)))
    static_index.write_all(
        record.folder / "simple", plan.project.name, [file.path for file in files]
    )
    return target

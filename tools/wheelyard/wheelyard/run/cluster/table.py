"""The live table of a cluster: each worker with what it offers and what it does now."""

from collections.abc import Iterable, Mapping

from rich.table import Table

from wheelyard.run.cluster.offers import Member, shown

ROWS = 16
WIDTH = 60


def table(members: Iterable[Member], at: Mapping[str, str], dashboard: str) -> Table:
    """`at` is the machine of each job that runs."""
    found = Table("machine", "offers", "runs", title=f"Cluster: {dashboard}", title_justify="left")
    rows = sorted(members, key=lambda member: member.name)
    jobs: dict[str, list[str]] = {}
    for job, machine in sorted(at.items()):
        jobs.setdefault(machine, []).append(job)
    for member in rows[:ROWS]:
        found.add_row(member.name, shown(member.resources), _some(jobs.pop(member.name, [])))
    if len(rows) > ROWS:
        rest = sum(len(jobs.pop(member.name, [])) for member in rows[ROWS:])
        found.add_row(f"and {len(rows) - ROWS} more", "", f"{rest} jobs")
    for machine, running in jobs.items():  # this one, and any that just went away
        found.add_row(machine, "", _some(running))
    return found


def _some(jobs: list[str]) -> str:
    text = ", ".join(jobs)
    return text if len(text) <= WIDTH else f"{text[:WIDTH]}... ({len(jobs)})"

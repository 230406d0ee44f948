"""Draws the timeline of a release from its record: which job ran when and where, and which jobs delayed the end."""

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

from wheelyard.core.record import Facts, Record

WIDTH, LEFT, ROW, TOP, BOTTOM = 900, 150, 16, 6, 24
PAUSE = 60.0  # seconds without a job: someone stopped the release, and continued it later


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


def html(record: Record) -> str:
    """Returns the timeline as a picture, and a sentence on what delayed the end; empty if no machine is known."""
    known = stays(record)
    if not known:
        return ""
    chain = bounding(record, known)
    whole = max(stay.ended for stay in known)
    busy = sum(stay.ended - stay.began for stay in chain)
    names = ", ".join(f"<code>{escape(s.job)}</code> ({s.ended - s.began:.0f} s)" for s in chain)
    machines = len({stay.machine for stay in known})
    return (
        f'<figure id="timeline">{_svg(known, chain, whole)}<figcaption>Jobs by machine ({machines}), '
        f"{whole:.0f} s in all. The end waited for {names}: {busy:.0f} s; the rest of the time the next of "
        "them waited for a machine, or for its step.</figcaption></figure>"
    )


def lanes(known: Iterable[Stay]) -> dict[str, list[list[Stay]]]:
    """Arranges the jobs of each machine in rows in which none overlap."""
    found: dict[str, list[list[Stay]]] = {}
    for stay in known:
        rows = found.setdefault(stay.machine, [])
        row = next((row for row in rows if row[-1].ended <= stay.began), None)
        if row is None:
            rows.append(row := [])
        row.append(stay)
    return found


def _svg(known: list[Stay], chain: list[Stay], whole: float) -> str:
    parts, y = [], float(TOP)
    scale = (WIDTH - LEFT) / (whole or 1)
    for machine, rows in sorted(lanes(known).items()):
        parts.append(svg_text(0, y + ROW - 4, machine[:20], "start"))
        for row in rows:
            parts += [_bar(stay, scale, y, stay in chain) for stay in row]
            y += ROW
        y += 4
    parts.append(svg_text(LEFT, y + 16, "0 s", "start"))
    parts.append(svg_text(WIDTH, y + 16, f"{whole:.0f} s", "end"))
    height = y + BOTTOM
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" height="{height:.0f}" role="img" '
        f'aria-label="Jobs by machine over time" font-size="12">{"".join(parts)}</svg>'
    )


def _bar(stay: Stay, scale: float, y: float, is_bounding: bool) -> str:
    width = max(1.0, (stay.ended - stay.began) * scale - 0.5)
    fill = 0.75 if is_bounding else 0.25
    return (
        f'<rect x="{LEFT + stay.began * scale:.1f}" y="{y:.1f}" width="{width:.1f}" height="{ROW - 3}" '
        f'fill="currentColor" fill-opacity="{fill}"><title>{escape(stay.job)}: '
        f"{stay.ended - stay.began:.1f} s</title></rect>"
    )


def svg_text(x: float, y: float, text: str, anchor: str) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="currentColor">'
        f"{escape(text)}</text>"
    )

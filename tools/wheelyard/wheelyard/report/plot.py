"""Draws measurements as SVG inside the report: lines told apart by dashes and names, not colour."""

import math
from html import escape
from typing import Any

WIDTH, HEIGHT, LEFT, BOTTOM, RIGHT, TOP = 640, 320, 60, 44, 140, 32
DASHES = ["", "8 4", "2 4", "10 3 2 3", "4 4"]


def bandwidth(name: str, result: dict[str, Any], dtype: str = "float32") -> str:
    """Bytes a second of each op over the number of elements, and the same as a table."""
    rows = [row for row in result["bandwidth"] if row["dtype"] == dtype]
    lines: dict[str, dict[int, float]] = {}
    for row in rows:
        lines.setdefault(_label(row), {})[row["elements"]] = row["gb_per_s"]
    machine = result["machine"]
    about = f"{machine['device']}, torch {machine['torch']}, {dtype} ({name})"
    return (
        f"<figure><figcaption>Bandwidth on {escape(about)}</figcaption>"
        f"{_svg(lines, f'Bandwidth of each op on {about}; the table below has the numbers')}"
        f"<details><summary>Numbers</summary>{_table(lines, about)}</details></figure>"
    )


def _label(row: dict[str, Any]) -> str:
    """The op, or torch's expression that it is compared with, where that is short enough to stand beside a line."""
    if row["layer"] != "torch":
        return str(row["name"])
    own = row["name"].rpartition(".")[2]
    return row["beside"] if len(row["beside"]) < 20 else f"torch's {own}"


def _svg(lines: dict[str, dict[int, float]], label: str) -> str:
    sizes = sorted({size for line in lines.values() for size in line})
    step = _round_step(max(value for line in lines.values() for value in line.values()) / 5)
    top = 5 * step
    first, last = math.log2(sizes[0]), math.log2(sizes[-1]) or 1

    def place(size: int, value: float) -> tuple[float, float]:
        x = LEFT + (math.log2(size) - first) / ((last - first) or 1) * (WIDTH - LEFT - RIGHT)
        return x, HEIGHT - BOTTOM - value / top * (HEIGHT - BOTTOM - TOP)

    parts = []
    for number in range(6):
        _, y = place(sizes[0], number * step)
        parts.append(_line([(LEFT, y), (WIDTH - RIGHT, y)], "", 0.25))
        parts.append(svg_text(LEFT - 6, y + 4, f"{number * step:,.0f}", "end"))
    for size in (sizes[0], sizes[len(sizes) // 2], sizes[-1]):
        parts.append(svg_text(place(size, 0)[0], HEIGHT - BOTTOM + 18, f"{size:,}", "middle"))
    parts.append(svg_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6, "elements", "middle"))
    parts.append(svg_text(2, 12, "GB/s", "start"))
    below = 0.0
    ends = sorted((place(max(line), line[max(line)])[1], op) for op, line in lines.items())
    for y, op in ends:
        dash = DASHES[list(lines).index(op) % len(DASHES)]
        parts.append(_line([place(s, v) for s, v in sorted(lines[op].items())], dash, 2))
        below = max(y, below + 15)
        parts.append(svg_text(WIDTH - RIGHT + 8, below + 4, op, "start"))
        parts.append(_line([(WIDTH - RIGHT, y), (WIDTH - RIGHT + 6, below)], "", 0.5))
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" '
        f'aria-label="{escape(label)}" font-size="12">{"".join(parts)}</svg>'
    )


def _round_step(least: float) -> float:
    """The first of 1, 2, 5, 10, 20, 50 ... that is not below `least`."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= least)


def _line(points: list[tuple[float, float]], dash: str, width: float) -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return (
        f'<polyline points="{path}" fill="none" stroke="currentColor" '
        f'stroke-width="{width}" stroke-dasharray="{dash}"/>'
    )


def svg_text(x: float, y: float, text: str, anchor: str) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="currentColor">'
        f"{escape(text)}</text>"
    )


def _table(lines: dict[str, dict[int, float]], label: str) -> str:
    sizes = sorted({size for line in lines.values() for size in line})
    head = "".join(f'<th scope="col">{escape(op)}</th>' for op in lines)
    rows = "".join(
        f'<tr><th scope="row">{size:,}</th>'
        + "".join(f'<td class="number">{line.get(size, 0):,.1f}</td>' for line in lines.values())
        + "</tr>"
        for size in sizes
    )
    return (
        f'<div class="scroll" role="region" aria-label="Numbers: {escape(label)}" tabindex="0">'
        f'<table><caption>GB/s</caption><thead><tr><th scope="col">elements</th>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )

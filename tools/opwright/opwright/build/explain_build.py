"""Shows where the last build's time went, from Ninja's log, as a table and an SVG.

.ninja_log, versions 6 and later, has one line for each output: start and end in milliseconds since
its build began, when its command started (nanoseconds since 1970), the output, the command's hash.
https://github.com/ninja-build/ninja/blob/master/src/build_log.cc
"""

import argparse
from dataclasses import dataclass
from html import escape
from pathlib import Path

from opwright.build.library import ENGINE, RECIPE
from opwright.build.project import BuildError

SAME_BUILD_SECONDS = 2.0
LOOKING_FOR_FILES = "verify_globs"  # a step of every build, even of one with nothing to do
WIDTH, ROW, LEFT = 1000, 26, 10


@dataclass(frozen=True)
class Step:
    """One command of a build, with times in seconds since the build began."""

    output: str
    start: float
    end: float

    @property
    def seconds(self) -> float:
        return self.end - self.start

    @property
    def name(self) -> str:
        """The source's name: csrc/add.cu for CMakeFiles/kernels.dir/csrc/add.cu.o."""
        return self.output.rpartition(".dir/")[2].removesuffix(".o")


def last_build(log: Path) -> list[Step]:
    """Returns the steps of the newest build in the log, in the order in which they began."""
    lines = [line.split("\t") for line in log.read_text().splitlines()]
    if not lines or not lines[0][0].startswith("# ninja log v"):
        raise BuildError(f"{log} is not Ninja's log")
    if int(lines[0][0].rpartition("v")[2]) < 6:
        raise BuildError(f"{log} is of a Ninja before 1.11; pip install 'ninja>=1.11', build again")
    dated = {}
    for start, end, began, file, _ in (line for line in lines if len(line) == 5):
        if LOOKING_FOR_FILES in file:
            continue
        output = file
        for folder in (ENGINE.parent, log.resolve().parents[2]):  # CMake writes whole paths
            written = str(folder).replace(" ", "_")
            output = output.replace(f".dir{written}/", ".dir/")
        step = Step(output, int(start) / 1000, int(end) / 1000)
        dated[step] = int(began) / 1e9 - step.start
    if not dated:
        raise BuildError(f"{log} is empty: nothing was built yet; run `opwright dev`")
    newest = max(dated.values())
    steps = [step for step, build in dated.items() if newest - build < SAME_BUILD_SECONDS]
    return sorted(steps, key=lambda step: (step.start, step.end))


def lanes(steps: list[Step]) -> list[list[Step]]:
    """Arranges the steps in as few rows as ran side by side."""
    rows: list[list[Step]] = []
    for step in steps:
        for row in rows:
            if row[-1].end <= step.start:
                row.append(step)
                break
        else:
            rows.append([step])
    return rows


def table(steps: list[Step]) -> str:
    wall = max(step.end for step in steps)
    work = sum(step.seconds for step in steps)
    lines = [
        f"{wall:.1f} s, {work:.1f} s of work in {len(steps)} steps: "
        f"{work / wall if wall else 1:.1f} at once on average",
        f"{'seconds':>8}{'share':>7}{'from':>8}{'to':>8}  step",
    ]
    for step in sorted(steps, key=lambda step: -step.seconds):
        share = step.seconds / work if work else 0
        times = f"{step.seconds:>8.2f}{share:>7.0%}{step.start:>8.2f}{step.end:>8.2f}"
        lines.append(f"{times}  {step.name}")
    return "\n".join(lines)


def svg(steps: list[Step]) -> str:
    """Draws one row for each command that ran at the same time; the width of a box shows its time."""
    rows = lanes(steps)
    wall = max(step.end for step in steps) or 1.0
    scale = (WIDTH - 2 * LEFT) / wall
    parts = []
    for index, row in enumerate(rows):
        y = 30 + index * ROW
        for step in row:
            x, width = LEFT + step.start * scale, max(step.seconds * scale, 0.5)
            colour = "#8fb3d9" if step.name.endswith(".cu") else "#d9c58f"
            label = f"{step.name}: {step.seconds:.2f} s"
            parts.append(
                f'<g><title>{escape(label)}</title><rect x="{x:.1f}" y="{y}" width="{width:.1f}" '
                f'height="{ROW - 2}" fill="{colour}" stroke="#444" stroke-width="0.5"/>'
            )
            if width > 40:
                shown = label if 6.5 * len(label) < width else step.name.rpartition("/")[2]
                shown = shown[: int(width / 6.5)]
                parts.append(f'<text x="{x + 3:.1f}" y="{y + 16}">{escape(shown)}</text>')
            parts.append("</g>")
    height = 30 + len(rows) * ROW + 10
    head = f"{wall:.2f} s; CUDA sources blue, everything else yellow"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="{escape(head)}" font-family="sans-serif" font-size="12">'
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>'
        f'<text x="{LEFT}" y="18">{escape(head)}</text>{"".join(parts)}</svg>\n'
    )


def newest_log() -> Path:
    """Finds the log of the extension's last build; build/ also has other programs' logs."""
    found = (Path.cwd() / "build").glob("*/.ninja_log")
    logs = [log for log in found if log.with_name(RECIPE).is_file()]
    logs.sort(key=lambda log: log.stat().st_mtime)
    if not logs:
        raise BuildError("nothing was built yet in build/; run `opwright dev`")
    return logs[-1]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, nargs="?", help="the build folder (default: newest)")
    parser.add_argument("--svg", type=Path, help="where to draw it (default: in the build folder)")


def run(arguments: argparse.Namespace) -> int:
    log = arguments.folder / ".ninja_log" if arguments.folder else newest_log()
    if not log.is_file():
        raise BuildError(f"{log} does not exist; name a folder that Ninja built in")
    steps = last_build(log)
    print(table(steps))
    drawing: Path = arguments.svg or log.with_name("explain.svg")
    drawing.write_text(svg(steps))
    print(f"drawn in {drawing}")
    return 0

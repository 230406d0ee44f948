"""Report: wheelhouse/report.html, what was made, what it serves and how that is known."""

from html import escape
from pathlib import Path

from ci import static_index
from ci.plan import Cell, verified_by
from ci.release import Release
from ci.state import Result, Task

STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
body { max-width: 70rem; margin: 2rem auto; padding: 0 1rem }
div { overflow-x: auto } table { border-collapse: collapse; margin: 1rem 0 }
th, td { border: 1px solid; padding: .2rem .6rem; text-align: left } code { word-break: break-all }
.run, .passed { background: #2e7d3260 } .link { background: #1565c040 }
.failed { background: #c6282880 }
"""


def tasks(release: Release) -> list[Task]:
    page = render(release)

    def write(_: Path) -> Result:
        file = release.wheelhouse / "report.html"
        file.write_text(page)
        files = release.artifacts().values()
        index = static_index.write(release.wheelhouse / "simple", release.project.name, files)
        return Result([file, *index.iterdir()])

    done = {
        name: record["inputs"] for name, record in release.state.tasks.items() if name != "report"
    }
    return [Task("report", "", {"tasks": done}, write)]


def render(release: Release) -> str:
    """The whole page."""
    head = release.state.head
    title = escape(f"{head['project']} {head['version']}")
    commit, strategy = escape(head["commit"]), escape(head["strategy"])
    pythons = release.matrix.python.versions
    return f"""<!doctype html>
<html lang=en><meta charset=utf-8><title>{title}</title>
<meta name=viewport content="width=device-width,initial-scale=1"><style>{STYLE}</style>
<h1>{title}</h1>
<p>commit <code>{commit}</code>, strategy {strategy}, {len(release.plan.cells)} cells</p>
{_table("Files", ["file", "bytes", "sha256"], _files(release))}
{_table("What it serves", ["arch", "torch", "CUDA", *pythons], _grid(release))}
{_table("Tasks", ["task", "verdict", "seconds", "result"], _tasks(release))}
</html>
"""


def _files(release: Release) -> list[list[str]]:
    return [
        [file.name, f"{file.stat().st_size:,}", release.sha256(name)]
        for name, file in release.artifacts().items()
    ]


def _grid(release: Release) -> list[list[str]]:
    rows: dict[tuple[str, str, str], dict[str, str]] = {}
    for cell in release.plan.cells:
        row = rows.setdefault((cell.arch, cell.torch, cell.cuda), {})
        row[cell.python] = _how(release, cell)
    return [
        [*key, *(row.get(p, "") for p in release.matrix.python.versions)]
        for key, row in rows.items()
    ]


def _how(release: Release, cell: Cell) -> str:
    return verified_by(release.matrix, cell, release.machine)


def _tasks(release: Release) -> list[list[str]]:
    rows = []
    for name, task in release.state.tasks.items():
        result = task["facts"].get("verdict") or task["facts"].get("error", "")
        rows.append([name, task["verdict"], f"{task['seconds']:.1f}", str(result)])
    return rows


def _table(title: str, header: list[str], rows: list[list[str]]) -> str:
    names = "".join(f"<th scope=col>{escape(name)}" for name in header)
    lines = "\n".join("<tr>" + "".join(map(_cell, row)) for row in rows)
    return f"<h2>{title}</h2><div tabindex=0><table><tr>{names}\n{lines}</table></div>"


def _cell(text: str) -> str:
    coloured = text in ("run", "link", "passed", "failed")
    return f"<td class={text}>{text}" if coloured else f"<td>{escape(text)}"

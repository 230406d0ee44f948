"""Package indexes of plain files (PEP 503 and 691), for any web server, and the page where people look up theirs.

Wheels that serve every torch lie in one index. Wheels for one torch lie in an index for each torch and CUDA, such as
simple/cu130-torch2.15/: pip takes the highest version that it finds, whatever torch is installed.
"""

import json
import zipfile
from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

from wheelyard.core.digest import sha256
from wheelyard.plan.cells import index_of_file, split_label

HEAD = "<!doctype html><html lang=en><meta charset=utf-8>"
STYLE = (
    "<style>body{font-family:sans-serif;margin:2em}td,th{padding:.3em 1em;text-align:left}</style>"
)


def write_all(folder: Path, project: str, files: list[Path]) -> None:
    """The index or indexes of a release, in `folder` beside its files."""
    parts = {part for file in files if (part := index_of_file(file.name))}
    if not parts:
        write(folder, project, files)
        return
    for part in parts:
        of_part = [file for file in files if index_of_file(file.name) == part]
        write(folder / part, project, of_part, base="../../../")
    (folder / "index.html").write_text(lookup_page(project, files))


def write(folder: Path, project: str, files: list[Path], base: str = "../../") -> Path:
    """Writes `folder`/<project>/index.html and index.json; `base` leads from there to the files. What there is to know
    of variants is written beside them."""
    name = canonicalize_name(project)
    place = folder / name
    place.mkdir(parents=True, exist_ok=True)
    entries = [(file.name, base, sha256(file), file.stat().st_size) for file in sorted(files)]
    for version, said in variants(files).items():
        file = place / f"{version}-variants.json"
        file.write_text(json.dumps(said, indent=1) + "\n")
        entries.append((file.name, "", sha256(file), file.stat().st_size))
    links = "\n".join(
        f'<a href="{base}{escape(file.replace("+", "%2B"))}#sha256={digest}">{escape(file)}</a><br>'
        for file, base, digest, _ in entries
    )
    (place / "index.html").write_text(f"{HEAD}<title>{name}</title>\n{links}\n</html>\n")
    listing = {
        "meta": {"api-version": "1.1"},
        "name": name,
        "files": [
            {
                "filename": file,
                "url": base + file.replace("+", "%2B"),
                "hashes": {"sha256": digest},
                "size": size,
            }
            for file, base, digest, size in entries
        ],
        "versions": sorted({file.split("-")[1].removesuffix(".tar.gz") for file, *_ in entries}),
    }
    (place / "index.json").write_text(json.dumps(listing, indent=1) + "\n")
    projects = sorted(page.parent.name for page in folder.glob("*/index.json"))
    links = "\n".join(f'<a href="{project}/">{project}</a><br>' for project in projects)
    (folder / "index.html").write_text(f"{HEAD}<title>{name}</title>\n{links}\n</html>\n")
    return place


def variants(files: Iterable[Path]) -> dict[str, Any]:
    """What PEP 825 asks of an index: by name and version, the variant.json files of all variants in one."""
    found: dict[str, Any] = {}
    for file in (file for file in sorted(files) if split_label(file.name)[1]):
        with zipfile.ZipFile(file) as archive:
            (member,) = (n for n in archive.namelist() if n.endswith(".dist-info/variant.json"))
            said = json.loads(archive.read(member))
        together = found.setdefault("-".join(file.name.split("-")[:2]), said)
        together["variants"] |= said["variants"]
    return found


def lookup_page(project: str, files: list[Path]) -> str:
    """A row for each torch and CUDA: the Pythons and platforms that have a wheel, and what to type."""
    name = escape(project)
    rows = []
    for part in sorted({p for file in files if (p := index_of_file(file.name))}, key=_order):
        of_part = {split_label(f.name)[0] for f in files if index_of_file(f.name) == part}
        tags = [name.removesuffix(".whl").split("-")[-3:] for name in sorted(of_part)]
        cuda, _, torch = part.partition("-torch")
        pythons = ", ".join(sorted({python for python, _, _ in tags}))
        platforms = ", ".join(sorted({platform.split(".")[0] for _, _, platform in tags}))
        command = f"pip install --index-url <i>where this page is</i>/{part}/ {name}"
        cells = (torch, cuda, pythons, platforms, f"<code>{command}</code>")
        rows.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    table = "\n".join(rows)
    return f"""{HEAD}<title>{name}</title>{STYLE}
<h1>{name}</h1>
<p>Each wheel is for one torch. This prints the row that is yours:
<code>python -c "import torch; print(torch.__version__, torch.version.cuda)"</code></p>
<table>
<tr><th>torch</th><th>CUDA</th><th>Python</th><th>platform</th><th>install</th></tr>
{table}
</table>
</html>
"""


def _order(part: str) -> tuple[list[int], str]:
    """2.9 before 2.10."""
    cuda, _, torch = part.partition("-torch")
    return [int(number) for number in torch.split(".")], cuda

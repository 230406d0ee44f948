"""Writes package indexes as plain files (PEP 503 and 691) for any web server, and the page where people look up theirs.

Wheels that serve every torch are in one index. Wheels for one torch are in an index for each torch and CUDA, such as
simple/cu130-torch2.15/: pip takes the highest version that it finds, whatever torch is installed.

An index only grows. A file is in its place before a page names it, and a page is replaced as a whole, so at any moment,
even after a kill, each page names only files that exist.
"""

import json
import re
import shutil
import zipfile
from collections.abc import Iterable
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

from wheelyard.config.matrix import version_key
from wheelyard.core.digest import sha256
from wheelyard.core.disk import flush
from wheelyard.core.lock import turn
from wheelyard.plan.cells import index_of_file, split_label
from wheelyard.problem import Problem
from wheelyard.tools import metadata

OURS = '<meta name="generator" content="wheelyard">'
HEAD = f"<!doctype html><html lang=en><meta charset=utf-8>{OURS}"
STYLE = (
    "<style>body{font-family:sans-serif;margin:2em}td,th{padding:.3em 1em;text-align:left}</style>"
)
END = re.compile(r"</(body|html)\s*>", re.IGNORECASE)


def append(site: Path, project: str, files: list[Path], address: str = "") -> list[str]:
    """Adds a release to the indexes in `site`/simple, and its files beside that, unless they are at `address`; returns
    the names that are new. Refuses a file whose name exists with other bytes before anything is written."""
    site.mkdir(parents=True, exist_ok=True)
    with turn(site):
        parts, name = _parts(files), canonicalize_name(project)
        for part, of_part in parts:
            _refuse_changed(site, site / "simple" / part / name, of_part)
        there = {f for part, _ in parts for f in _listed(site / "simple" / part / name)}
        for part, of_part in parts:
            for file in of_part if not address else ():
                _put(site / file.name, file)
            base = f"{address.rstrip('/')}/" if address else "../../../" if part else "../../"
            _add(site / "simple" / part, project, of_part, base)
        _write_front(site / "simple")
    return [file.name for _, of_part in parts for file in of_part if file.name not in there]


def _parts(files: list[Path]) -> list[tuple[str, list[Path]]]:
    """Returns the files of each index. The sdist of wheels for one torch is in none, as pip would take it for any
    torch."""
    parts = sorted({part for file in files if (part := index_of_file(file.name))}) or [""]
    return [(part, sorted(f for f in files if index_of_file(f.name) == part)) for part in parts]


def _refuse_changed(site: Path, place: Path, files: list[Path]) -> None:
    listed = _listed(place)
    for file in files:
        there = site / file.name
        known = sha256(there) if there.exists() else listed.get(file.name)
        if known == "":
            raise Problem(f"{place} lists {file.name} without a sha256 to compare it by")
        if {known, listed.get(file.name)} - {None, "", sha256(file)}:
            raise Problem(
                f"{site} has {file.name} with other bytes; a published file cannot change: raise the version"
            )
    for version, said in variants(files).items():
        file = place / f"{version}-variants.json"
        if file.exists() and file.read_bytes() != _json(said):
            raise Problem(
                f"{file} names other variants; a published version cannot change: raise it"
            )
    if (place / "index.json").exists() and not (place / "index.html").exists():
        raise Problem(
            f"{place} has an index.json and no index.html, which pip asks a web server for"
        )


def _add(folder: Path, project: str, files: list[Path], base: str) -> None:
    """Adds files to `folder`/<project>/index.html and index.json; `base` leads from there to the files. Facts about
    variants are written beside them."""
    name = canonicalize_name(project)
    place = folder / name
    place.mkdir(parents=True, exist_ok=True)
    entries = [_entry(file, base) for file in sorted(files)]
    for version, said in variants(files).items():
        file = place / f"{version}-variants.json"
        _put(file, _json(said))
        entries.append(_entry(file, ""))
    page, listing = place / "index.html", place / "index.json"
    is_new = not page.exists()
    if is_new or listing.exists():  # an index.json beside a longer page would hide that page
        empty: dict[str, Any] = {
            "meta": {"api-version": "1.1"},
            "name": name,
            "files": [],
            "versions": [],
        }
        said = json.loads(listing.read_text()) if listing.exists() else empty
        names = {entry["filename"] for entry in said["files"]}
        said["files"] += [entry for entry in entries if entry["filename"] not in names]
        versions = {e["filename"].split("-")[1].removesuffix(".tar.gz") for e in entries}
        said["versions"] = sorted({*said.get("versions", []), *versions})
        _put(listing, _json(said))
    text = f"{HEAD}<title>{name}</title>\n</html>\n" if is_new else page.read_text()
    known = _Links(text).found
    _put(page, _with_lines(text, [_link(e) for e in entries if e["filename"] not in known]))
    _write_front(folder)


def _json(said: dict[str, Any]) -> bytes:
    return (json.dumps(said, indent=1) + "\n").encode()


def _entry(file: Path, base: str) -> dict[str, Any]:
    """Returns a file's entry in index.json (PEP 691)."""
    pythons = metadata.fields(file)["Requires-Python"] if file.suffix != ".json" else None
    return {
        "filename": file.name,
        "url": base + file.name.replace("+", "%2B"),
        "hashes": {"sha256": sha256(file)},
        "size": file.stat().st_size,
        **({"requires-python": pythons} if pythons else {}),
    }


def _link(entry: dict[str, Any]) -> str:
    """Returns an entry's link in index.html (PEP 503)."""
    pythons = entry.get("requires-python")
    limit = f' data-requires-python="{escape(pythons)}"' if pythons else ""
    target = f"{escape(entry['url'])}#sha256={entry['hashes']['sha256']}"
    return f'<a href="{target}"{limit}>{escape(entry["filename"])}</a><br>'


def _with_lines(page: str, lines: list[str]) -> bytes:
    """Returns a page with more lines at its end, and nothing else changed."""
    end = END.search(page)
    place = end.start() if end else len(page)
    return (page[:place] + "".join(f"{line}\n" for line in lines) + page[place:]).encode()


def _put(file: Path, content: bytes | Path) -> None:
    """Writes a file, or copies one, so that others see the old file or all of the new one; does nothing if it is the
    same."""
    is_copy = isinstance(content, Path)
    if file.exists() and (is_copy or file.read_bytes() == content):
        return
    new = file.with_name(f".{file.name}.new")
    if isinstance(content, Path):
        shutil.copyfile(content, new)
    else:
        new.write_bytes(content)
    flush(new)
    new.replace(file)


class _Links(HTMLParser):
    """The text of each link of a page, and the sha256 at the end of its address."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: dict[str, str] = {}
        self._target: str | None = None
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self._target = dict(attrs).get("href") or ""

    def handle_data(self, data: str) -> None:
        if self._target is not None and data.strip():
            digest = re.search(r"#sha256=([0-9a-f]{64})", self._target)
            self.found[data.strip()] = digest[1] if digest else ""
            self._target = None


def _listed(place: Path) -> dict[str, str]:
    """Returns a project's files in an index, each with its sha256, or an empty text if the page does not tell it."""
    page = place / "index.html"
    return _Links(page.read_text()).found if page.exists() else {}


def variants(files: Iterable[Path]) -> dict[str, Any]:
    """Returns what PEP 825 asks of an index: the variant.json files of all variants in one, by name and version."""
    found: dict[str, Any] = {}
    for file in (file for file in sorted(files) if split_label(file.name)[1]):
        with zipfile.ZipFile(file) as archive:
            (member,) = (n for n in archive.namelist() if n.endswith(".dist-info/variant.json"))
            said = json.loads(archive.read(member))
        together = found.setdefault("-".join(file.name.split("-")[:2]), said)
        together["variants"] |= said["variants"]
    return found


def _write_front(folder: Path) -> None:
    """Writes the page above projects and indexes. Ours is made anew; missing links are added to a page that somebody
    else made."""
    below = sorted(file.parent for file in folder.glob("*/index.html"))
    links = {f"{place.name}/": f'<a href="{place.name}/">{place.name}</a><br>' for place in below}
    page = folder / "index.html"
    if page.exists() and OURS not in (text := page.read_text()):
        missing = [link for target, link in links.items() if f'"{target}"' not in text]
        _put(page, _with_lines(text, missing))
        return
    rows = [(part, project) for part in below for project in sorted(part.glob("*/index.html"))]
    table = _table(sorted(rows, key=lambda row: _order(row[0].name))) if rows else ""
    plain = [links[f"{p.name}/"] for p in below if p not in [part for part, _ in rows]]
    lines = "\n".join([*plain, *([table] if table else [])])
    _put(page, f"{HEAD}<title>Packages</title>{STYLE}\n{lines}\n</html>\n".encode())


def _table(rows: list[tuple[Path, Path]]) -> str:
    """Returns a table with a row for each torch and CUDA: the Pythons and platforms that have a wheel, and what to
    type."""
    lines = []
    for part, page in rows:
        wheels = {split_label(name)[0] for name in _listed(page.parent) if name.endswith(".whl")}
        tags = [name.removesuffix(".whl").split("-")[-3:] for name in sorted(wheels)]
        cuda, _, torch = part.name.partition("-torch")
        pythons = ", ".join(sorted({python for python, _, _ in tags}))
        platforms = ", ".join(sorted({platform.split(".")[0] for _, _, platform in tags}))
        name = page.parent.name
        command = f"pip install --index-url <i>where this page is</i>/{part.name}/ {name}"
        cells = (torch, cuda, pythons, platforms, f"<code>{command}</code>")
        lines.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    table = "\n".join(lines)
    return f"""<p>Each wheel is for one torch. This prints the row that is yours:
<code>python -c "import torch; print(torch.__version__, torch.version.cuda)"</code></p>
<table>
<tr><th>torch</th><th>CUDA</th><th>Python</th><th>platform</th><th>install</th></tr>
{table}
</table>"""


def _order(part: str) -> tuple[tuple[int, ...], str]:
    """Returns a key that sorts torch 2.9 before 2.10."""
    cuda, _, torch = part.partition("-torch")
    return version_key(torch), cuda

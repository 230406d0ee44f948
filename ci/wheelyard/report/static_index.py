"""A package index of plain files (PEP 503 and 691), for any web server."""

import json
from collections.abc import Iterable
from html import escape
from pathlib import Path

from wheelyard.core.digest import sha256


def write(folder: Path, project: str, files: Iterable[Path], base: str = "../../") -> Path:
    """Writes `folder`/<project>/index.html and index.json; `base` leads from there to the files."""
    name = project.replace("_", "-").lower()
    place = folder / name
    place.mkdir(parents=True, exist_ok=True)
    entries = [(file.name, sha256(file), file.stat().st_size) for file in sorted(files)]
    links = "\n".join(
        f'<a href="{base}{escape(file.replace("+", "%2B"))}#sha256={digest}">{escape(file)}</a><br>'
        for file, digest, _ in entries
    )
    head = f"<!doctype html><html lang=en><meta charset=utf-8><title>{name}</title>"
    (place / "index.html").write_text(f"{head}\n{links}\n</html>\n")
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
            for file, digest, size in entries
        ],
        "versions": sorted({file.split("-")[1].removesuffix(".tar.gz") for file, _, _ in entries}),
    }
    (place / "index.json").write_text(json.dumps(listing, indent=1) + "\n")
    (folder / "index.html").write_text(f'{head}\n<a href="{name}/">{name}</a>\n</html>\n')
    return place

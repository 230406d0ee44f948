"""Adds pages outside docs/ to the MkDocs site, and makes links work there that are written for the code host.

Each page is Markdown that stays where its readers look for it, such as README.md, and its links are written for that
place. On the site, a link to another page leads to that page, and one to any other file or folder leads to the
repository.
"""

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
ELSEWHERE = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "RELEASE.md": "release.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
    # `make docs` makes these
    "build/pages/support.md": "support.md",
    **{
        f"build/pages/{name}": f"wheelyard/{name}"
        for file in ("matrix", "policy")
        for name in (f"{file}.md", f"{file}.schema.json")
    },
}
# Links to these sources, which define the keys of a file, lead to the page that is made from them.
MADE_FROM = {
    f"tools/wheelyard/wheelyard/config/{file}.py": f"build/pages/{file}.md"
    for file in ("matrix", "policy")
}
# tools/NAME/README.md and tools/NAME/docs/ become the folder NAME/ of the site.
for file in sorted([*ROOT.glob("tools/*/README.md"), *ROOT.glob("tools/*/docs/*.*")]):
    source = file.relative_to(ROOT)
    if file.suffix in (".md", ".svg", ".png", ".json"):
        ELSEWHERE[source.as_posix()] = f"{source.parts[1]}/{file.name}"
SOURCES = {page: source for source, page in ELSEWHERE.items()}
LINK = re.compile(r"(?<=\]\()([^)#\s]+)")
BADGE = re.compile(r"\[!\[([^]]*)\]\(https?://[^)]*\)\]")  # a picture from another server


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages outside docs/; the docs of tools/NAME are the site's folder NAME."""
    for source, page in ELSEWHERE.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / source)))
    return files


def on_page_markdown(markdown: str, page: Page, config: Any, files: Files) -> str:
    uri = page.file.src_uri
    source = SOURCES.get(uri, f"docs/{uri}")
    repository = config.extra["repository"]

    def lead(link: re.Match[str]) -> str:
        if link[1].startswith(f"{repository}/blob/main/"):
            target = link[1].removeprefix(f"{repository}/blob/main/")
        elif ":" in link[1]:
            return link[1]
        else:
            target = posixpath.normpath(posixpath.join(posixpath.dirname(source), link[1]))
        target = MADE_FROM.get(target, target)
        there = ELSEWHERE.get(target, target.removeprefix("docs/"))
        if files.get_file_from_path(there) and (target in ELSEWHERE or target.startswith("docs/")):
            return posixpath.relpath(there, posixpath.dirname(uri) or ".")
        if (ROOT / target).exists():
            return f"{repository}/{'tree' if (ROOT / target).is_dir() else 'blob'}/main/{target}"
        return link[1]  # MkDocs says that it leads nowhere

    parts = re.split(r"(^ *```.*?^ *```$)", BADGE.sub(r"[\1]", markdown), flags=re.M | re.S)
    return "".join(
        part if part.lstrip().startswith("```") else LINK.sub(lead, part) for part in parts
    )

"""The figures of docs/atlas.md, from what `wheelscope atlas` wrote: `python -m validation.atlas_figures ATLAS.json`."""

import json
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

Release = dict[str, Any]


def abi_of(release: Release) -> str:
    """Of its wheels for x86-64, the one that binds most."""
    kinds = {file["torch_abi"] for file in release["files"]}
    if not kinds:
        return "sources alone"
    return next(kind for kind in ("cxx", "stable", "none") if kind in kinds)


def loads(release: Release, torch: str) -> bool:
    return any(cell["torch"] == torch and cell["verdict"] == "works" for cell in release["cells"])


def breaks(release: Release, torch: str) -> bool:
    """Whether this torch lacks what it needs, and METADATA does not say so."""
    return not loads(release, torch) and any(
        cell["torch"] == torch
        and cell["obstacle"] == "torch"
        and cell["verdict"] == "fails"
        and not cell["reason"].startswith("it requires")
        for cell in release["cells"]
    )


def main() -> None:
    atlas = json.loads(Path(sys.argv[1]).read_text())["atlas"]
    projects = [project for project in atlas["projects"] if project["releases"]]
    newest = [project["releases"][0] for project in projects]
    files = [
        file for project in projects for release in project["releases"] for file in release["files"]
    ]
    size, read = (sum(file[key] for file in files) for key in ("size", "read"))
    print(
        f"projects {len(projects)}, releases {sum(len(project['releases']) for project in projects)}"
    )
    print(f"wheels {len(files)}, GB {size / 1e9:.1f}, read {read / 1e9:.1f} ({read / size:.1%})")
    unread = [file for file in files if file["problem"]]
    print(f"wheels that could not be read: {len(unread)}")
    print("ABI of the newest release:", dict(Counter(map(abi_of, newest))))
    on_torch = [release for release in newest if abi_of(release) in ("cxx", "stable")]
    verdicts = Counter(
        cell["verdict"]
        for release in on_torch
        for cell in release["cells"]
        for _ in cell["pythons"]
    )
    print("cells of those that link to torch:", dict(verdicts))
    false = Counter(
        claim for release in on_torch for claim in {one["id"] for one in release["false_claims"]}
    )
    print(
        "false claims of those:",
        dict(false),
        "any:",
        sum(bool(release["false_claims"]) for release in on_torch),
    )
    wheels = sum(release["linux_wheels"] for release in newest if abi_of(release) == "cxx")
    left = sum(release["architectures"] for release in newest if abi_of(release) == "cxx")
    print(
        f"wheels for Linux of the newest releases on the C++ ABI: {wheels}; one for each architecture: {left}"
    )
    minors = [torch["minor"] for torch in atlas["torches"]]
    all_releases = [release for project in projects for release in project["releases"]]
    for kind in ("cxx", "stable"):
        some = [release for release in all_releases if abi_of(release) == kind]
        print(
            kind,
            "loads with:",
            {torch: sum(loads(release, torch) for release in some) for torch in minors},
        )
        for old, new in pairwise(minors):
            had = [release for release in some if loads(release, old)]
            print(
                f"  {old} -> {new}: of {len(had)} {sum(breaks(release, new) for release in had)} break"
            )


if __name__ == "__main__":
    main()

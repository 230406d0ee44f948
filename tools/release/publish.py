"""Publishes the wheels of the tools: `python -m tools.release.publish INDEX FOLDER`.

If INDEX is testpypi or pypi, files that the index has are not sent again; a file of that name with other bytes is an
error. DIGESTS holds the sha256 and name of every wheel, as `make tool-digests` printed it where they were made: nothing
else is sent. If INDEX is release, the wheels join the release in build/release, in its tools/ and its static index. If
it is none, the wheels are only compared with DIGESTS.
"""

import os
import shutil
import sys
from pathlib import Path

from wheelyard.core.digest import sha256
from wheelyard.problem import Problem
from wheelyard.steps import publish
from wheelyard.tools import index, static_index

RELEASE = Path(
    os.environ.get("RELEASE_FOLDER") or Path(__file__).resolve().parents[2] / "build/release"
)


def main() -> None:
    # The path is absolute, as the programs run in folders of their own.
    name, folder = sys.argv[1], Path(sys.argv[2]).resolve()
    if name not in ("none", "release", "testpypi", "pypi"):
        sys.exit(f"error: {name} is no index of the tools; give release, testpypi or pypi")
    wheels = sorted(folder.glob("*.whl"))
    if not wheels:
        sys.exit(f"error: {folder} has no wheels; `make tool-wheels` makes them")
    digests = {wheel: sha256(wheel) for wheel in wheels}
    if name != "release":
        check(digests, os.environ.get("DIGESTS", ""))
    projects = {
        project: [wheel for wheel in wheels if wheel.name.startswith(f"{project}-")]
        for project in sorted({wheel.name.split("-")[0] for wheel in wheels})
    }
    if name == "none":
        return
    if name == "release":
        add_to_release(RELEASE, projects)
        return
    log = folder / "twine.log"
    log.write_bytes(b"")
    try:
        with index.ready(name, folder) as target:
            for project, files in projects.items():
                sent = publish.upload(target, project, {f: digests[f] for f in files}, log)
                print(f"{project}: {len(sent)} uploaded, {len(files) - len(sent)} already there")
    except Problem as problem:
        sys.exit(f"error: {problem}")


def check(found: dict[Path, str], told: str) -> None:
    """Ends the program unless the wheels are those of `told`: the same names, the same bytes, one of each."""
    words = told.split()
    expected = dict(zip(words[1::2], words[::2], strict=False))
    if not words or len(words) != 2 * len(expected):
        sys.exit(
            "error: DIGESTS must hold the sha256 and name of each wheel once; "
            'where they were made: DIGESTS="$(make --silent tool-digests)"'
        )
    for name in sorted(expected.keys() | {wheel.name for wheel in found}):
        here = next((digest for wheel, digest in found.items() if wheel.name == name), "missing")
        if here != expected.get(name, "unknown"):
            sys.exit(
                f"error: {name} is {here} here, and {expected.get(name, 'unknown')} where the wheels "
                "were made; nothing is sent"
            )


def add_to_release(folder: Path, projects: dict[str, list[Path]]) -> None:
    shutil.rmtree(folder / "tools", ignore_errors=True)
    (folder / "tools").mkdir(parents=True)
    for project, wheels in projects.items():
        files = [Path(shutil.copy(wheel, folder / "tools")) for wheel in wheels]
        shutil.rmtree(folder / "simple" / project, ignore_errors=True)
        static_index.append(folder, project, files, "../../tools")
    print(f"{', '.join(projects)}: in {folder}/tools, and in the index of {folder}/simple")


if __name__ == "__main__":
    main()

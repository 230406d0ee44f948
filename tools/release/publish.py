"""Publishes the wheels of wheelyard and wheelscope: `python -m tools.release.publish INDEX FOLDER`.

INDEX is testpypi or pypi: what is there is not sent again; a file of that name with other bytes is an error. Or it is
wheelhouse: then the wheels join the release there, in wheelhouse/tools/ and in its static index.
"""

import os
import shutil
import sys
from pathlib import Path

from wheelyard.core.digest import sha256
from wheelyard.problem import Problem
from wheelyard.report import static_index
from wheelyard.steps import publish
from wheelyard.tools import index

WHEELHOUSE = Path(
    os.environ.get("WHEELHOUSE") or Path(__file__).resolve().parents[2] / "wheelhouse"
)


def main() -> None:
    name, folder = sys.argv[1], Path(sys.argv[2])
    if name not in ("wheelhouse", "testpypi", "pypi"):
        sys.exit(f"error: {name} is no index of the tools; give wheelhouse, testpypi or pypi")
    wheels = sorted(folder.glob("*.whl"))
    if not wheels:
        sys.exit(f"error: {folder} has no wheels; `make tool-wheels` makes them")
    projects = {
        project: [wheel for wheel in wheels if wheel.name.startswith(f"{project}-")]
        for project in sorted({wheel.name.split("-")[0] for wheel in wheels})
    }
    if name == "wheelhouse":
        add_to_release(WHEELHOUSE, projects)
        return
    log = folder / "twine.log"
    log.write_bytes(b"")
    try:
        with index.ready(name, folder, "", log) as target:
            for project, files in projects.items():
                sent = publish.upload(target, project, {f: sha256(f) for f in files}, log)
                print(f"{project}: {len(sent)} uploaded, {len(files) - len(sent)} already there")
    except Problem as problem:
        sys.exit(f"error: {problem}")


def add_to_release(wheelhouse: Path, projects: dict[str, list[Path]]) -> None:
    shutil.rmtree(wheelhouse / "tools", ignore_errors=True)
    (wheelhouse / "tools").mkdir(parents=True)
    for project, wheels in projects.items():
        files = [Path(shutil.copy(wheel, wheelhouse / "tools")) for wheel in wheels]
        static_index.write(wheelhouse / "simple", project, files, base="../../tools/")
    print(f"{', '.join(projects)}: in {wheelhouse}/tools, and in the index of {wheelhouse}/simple")


if __name__ == "__main__":
    main()

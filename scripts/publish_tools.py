"""Uploads the wheels of wheelyard and wheelscope: `python -m scripts.publish_tools INDEX FOLDER`.

INDEX is testpypi or pypi. What is there is not sent again; a file of that name with other bytes is an error.
"""

import sys
from pathlib import Path

from wheelyard.problem import Problem
from wheelyard.steps import publish
from wheelyard.tools import index


def main() -> None:
    name, folder = sys.argv[1], Path(sys.argv[2])
    if name not in ("testpypi", "pypi"):
        sys.exit(f"error: {name} is no index of the tools; give testpypi or pypi")
    wheels = sorted(folder.glob("*.whl"))
    if not wheels:
        sys.exit(f"error: {folder} has no wheels; `make tool-wheels` makes them")
    log = folder / "twine.log"
    log.write_bytes(b"")
    try:
        with index.ready(name, folder, "", log) as target:
            for project in sorted({wheel.name.split("-")[0] for wheel in wheels}):
                files = [wheel for wheel in wheels if wheel.name.startswith(f"{project}-")]
                sent = publish.upload(target, project, files, log)
                print(f"{project}: {len(sent)} uploaded, {len(files) - len(sent)} already there")
    except Problem as problem:
        sys.exit(f"error: {problem}")


if __name__ == "__main__":
    main()

"""Gate: may the wheels be released? wheelscope check and cover, twine, check-wheel-contents."""

import re
import zipfile
from pathlib import Path, PurePosixPath

from wheelyard.config import policy
from wheelyard.core import digest, shell
from wheelyard.core.digest import sha256
from wheelyard.core.environment import isolated
from wheelyard.core.job import Job, Needs, Source, made
from wheelyard.core.record import Facts
from wheelyard.core.workspace import Workspace
from wheelyard.plan.plan import Plan
from wheelyard.tools import wheelscope

COVER = "cover"


def jobs(plan: Plan) -> list[Job]:
    origins = {"sdist": "build/sdist", **{w.name: f"repair/{w.name}" for w in plan.wheels}}
    found = [_file_job(plan, name, origin) for name, origin in origins.items()]
    if plan.wheels == plan.buildable:
        found.append(_cover_job(plan))
    return found


def run(job: Job, workspace: Workspace) -> Facts:
    return _cover(workspace) if job.unit == COVER else _judge(workspace)


def _file_job(plan: Plan, name: str, origin: str) -> Job:
    """One file by itself."""
    rules = plan.project.root / policy.FILE
    policy.load(rules)  # what is wrong with it names its line
    inputs = {
        "file": made(origin),
        "policy": Source({policy.FILE: sha256(rules)}),
        "tools": digest.tools("twine", "check-wheel-contents")
        | {"wheelscope": wheelscope.digest()},
        "code": digest.code(__name__),
    }
    return Job("gate", name, Needs(), inputs)


def _judge(workspace: Workspace) -> Facts:
    file = workspace.file("file")
    checks = {"twine check": isolated("twine", "check", "--strict", file)}
    if file.suffix == ".whl":
        rules = workspace.sources("policy") / policy.FILE
        wheelscope.check(file, rules, workspace.log)
        checks["check-wheel-contents"] = contents_check(file)
    for what, command in checks.items():
        shell.run(command, workspace.log, what=f"{what} of {file.name}")
    return {"checks": list(checks)}


def contents_check(wheel: Path) -> list[object]:
    """The command. It takes every library for a Python module, which must lie where Python can import it."""
    command = isolated("check_wheel_contents", "--no-config")
    with zipfile.ZipFile(wheel) as archive:
        libraries = [PurePosixPath(n) for n in archive.namelist() if n.endswith(".so")]
    if any(_is_loaded_by_path(library) for library in libraries):  # verify imports the modules
        command += ["--ignore", "W004"]
    return [*command, wheel]


def _is_loaded_by_path(library: PurePosixPath) -> bool:
    """CMake projects keep one for each torch, as in `torch-2.15/lib/libname.so`; a module's name has Python's tag."""
    is_module = re.search(r"\.(cpython-.*|abi3)\.so$", library.name) or library.name[:3] != "lib"
    return not is_module and not all(folder.isidentifier() for folder in library.parts[:-1])


def _cover_job(plan: Plan) -> Job:
    """All wheels together: no cell of the matrix may be unserved."""
    inputs = {
        "wheels": made(*(f"repair/{wheel.name}" for wheel in plan.wheels)),
        "cells": {
            "arch": list(dict.fromkeys(wheel.arch for wheel in plan.wheels)),
            "torch": {
                n: {"cuda": t.cuda, "pythons": t.pythons} for n, t in plan.matrix.torch.items()
            },
        },
        "tools": {"wheelscope": wheelscope.digest()},
        "code": digest.code(__name__),
    }
    return Job("gate", COVER, Needs(), inputs)


def _cover(workspace: Workspace) -> Facts:
    cells, wheels = workspace.inputs["cells"], workspace.files("wheels")
    matrix = workspace.scratch("cells") / "matrix.toml"
    matrix.write_text(cells_as_toml(cells))
    wheelscope.cover(wheels, matrix, workspace.log)
    count = len(cells["arch"]) * sum(
        len(t["cuda"]) * len(t["pythons"]) for t in cells["torch"].values()
    )
    return {"cells": count, "verdict": f"{len(wheels)} wheels serve {count} cells"}


def cells_as_toml(cells: Facts) -> str:
    """What wheelscope reads: architectures, and of each torch its CUDA builds and Pythons."""
    lines = [f"[arch.{arch}]" for arch in cells["arch"]]
    for name, torch in cells["torch"].items():
        lines += [f'[torch."{name}"]', f"cuda = {torch['cuda']}", f"pythons = {torch['pythons']}"]
    return "\n".join([*lines, ""])

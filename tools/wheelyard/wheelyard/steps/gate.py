"""Gate: decides whether the wheels may be released, with wheelscope, twine and check-wheel-contents."""

import re
import zipfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from wheelyard.config import policy
from wheelyard.core import digest, shell
from wheelyard.core.digest import sha256
from wheelyard.core.environment import isolated
from wheelyard.core.job import Job, Needs, Source, made
from wheelyard.core.workspace import Workspace
from wheelyard.plan.cells import Wheel
from wheelyard.plan.plan import Plan
from wheelyard.problem import Problem, counted
from wheelyard.tools import metadata, wheelscope

COVER = "cover"
# Findings of check-wheel-contents that ordinary extension wheels have: a module beside the package (W009), and the
# folder of the libraries that auditwheel copied in (W009, W010).
DEFAULT_LEVELS = {"W009": "off", "W010": "off"}
LEVELS_HINT = f"""If that is intended, switch the finding off in {policy.FILE}:
  [levels]
  W002 = "off"  # the id that is shown above"""


def jobs(plan: Plan) -> list[Job]:
    origins = {"sdist": "build/sdist", **{w.name: f"repair/{w.name}" for w in plan.wheels}}
    found = [_file_job(plan, name, origin) for name, origin in origins.items()]
    found += [_variants_job(plan, wheel) for wheel in plan.wheels if plan.variants(wheel)]
    if plan.wheels == plan.buildable:
        found.append(_cover_job(plan))
    return found


def run(job: Job, workspace: Workspace) -> str:
    if "variants" in job.inputs:
        return _compare(workspace)
    return _cover(workspace) if job.unit == COVER else _judge(workspace)


def _file_job(plan: Plan, name: str, origin: str) -> Job:
    """Returns a job that judges one file by itself."""
    rules = plan.project.root / policy.FILE
    policy.load(rules)  # raises on an error, naming its line
    inputs = {
        "file": made(origin),
        "policy": Source({policy.FILE: sha256(rules)}),
        "tools": digest.tools("twine", "check-wheel-contents")
        | {"wheelscope": wheelscope.digest()},
        "code": digest.code(__name__),
    }
    return Job("gate", name, Needs(), inputs)


def _judge(workspace: Workspace) -> str:
    file = workspace.file("file")
    rules = workspace.sources("policy") / policy.FILE
    levels = policy.load(rules).levels
    if file.suffix != ".whl":
        metadata.check(file, levels, workspace.log)
        return "twine"
    wheelscope.check(file, rules, workspace.log)
    metadata.check(file, levels, workspace.log)
    what = f"check-wheel-contents of {file.name}"
    try:
        shell.run(contents_check(file, levels), workspace.log, what=what)
    except Problem as problem:
        raise Problem(f"{problem}\n{LEVELS_HINT}") from None
    return "wheelscope, twine, check-wheel-contents"


def contents_check(wheel: Path, levels: Mapping[str, str]) -> list[object]:
    """Returns the command of check-wheel-contents. It ignores findings that the policy's levels do not call an
    error."""
    with zipfile.ZipFile(wheel) as archive:
        libraries = [PurePosixPath(n) for n in archive.namelist() if n.endswith(".so")]
    off = dict(DEFAULT_LEVELS)
    if any(_is_loaded_by_path(library) for library in libraries):  # verify imports the modules
        off["W004"] = "off"
    off |= {name: level for name, level in levels.items() if re.fullmatch(r"W\d{3}", name)}
    ignored = sorted(name for name, level in off.items() if level != "error")
    options = ["--ignore", ",".join(ignored)] if ignored else []
    return isolated("check_wheel_contents", "--no-config", *options, wheel)


def _is_loaded_by_path(library: PurePosixPath) -> bool:
    """Whether a library is loaded by its path. CMake projects keep one for each torch, as in
    `torch-2.15/lib/libname.so`; a module's name has Python's tag."""
    is_module = re.search(r"\.(cpython-.*|abi3)\.so$", library.name) or library.name[:3] != "lib"
    return not is_module and not all(folder.isidentifier() for folder in library.parts[:-1])


def _variants_job(plan: Plan, wheel: Wheel) -> Job:
    """Returns a job that compares all variants of a wheel with it. Nothing but device code may differ, so findings on
    the wheel hold for them too; and every GPU with native code in the wheel needs a variant with the same code."""
    inputs = {
        "wheel": made(f"repair/{wheel.name}"),
        "variants": made(*(f"repair/{variant.name}" for variant in plan.variants(wheel))),
        "tools": {"wheelscope": wheelscope.digest()},
        "code": digest.code(__name__),
    }
    return Job("gate", f"{wheel.name}-variants", Needs(), inputs)


def _compare(workspace: Workspace) -> str:
    wheel, variants = workspace.file("wheel"), workspace.files("variants")
    served = wheelscope.same_code(wheel, variants)
    seen = wheelscope.show(wheel)["cuda"]["gpus"]
    native = [gpu["capability"] for gpu in seen if gpu["served"] == "native"]
    if lost := [gpu for gpu in native if gpu not in served]:
        raise Problem(
            f"{wheel.name} has native code for {', '.join(lost)}, which no variant of it has; "
            "name that GPU among the toolkit's targets in ci/matrix.toml, or do not build for it"
        )
    return f"{counted(len(variants), 'variant')} serve {', '.join(native)}"


def _cover_job(plan: Plan) -> Job:
    """Returns a job that checks that the wheels together serve every cell of the matrix."""
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


def _cover(workspace: Workspace) -> str:
    cells, wheels = workspace.inputs["cells"], workspace.files("wheels")
    matrix = workspace.scratch("cells") / "matrix.toml"
    lines = [f"[arch.{arch}]" for arch in cells["arch"]]  # as wheelscope reads them
    for name, torch in cells["torch"].items():
        lines += [f'[torch."{name}"]', f"cuda = {torch['cuda']}", f"pythons = {torch['pythons']}"]
    matrix.write_text("\n".join(lines))
    wheelscope.cover(wheels, matrix, workspace.log)
    count = len(cells["arch"]) * sum(
        len(t["cuda"]) * len(t["pythons"]) for t in cells["torch"].values()
    )
    serve = "serves" if len(wheels) == 1 else "serve"
    return f"{counted(len(wheels), 'wheel')} {serve} {counted(count, 'cell')}"

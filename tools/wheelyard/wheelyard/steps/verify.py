"""Verify: runs the package's tests on each torch and Python that runs here, and links the wheels with the rest."""

import importlib
import itertools
import re
import shlex
import shutil
from pathlib import Path
from types import ModuleType

from wheelyard.config.matrix import FILE, RunCell
from wheelyard.core import digest, shell
from wheelyard.core.digest import sha256
from wheelyard.core.disk import flush
from wheelyard.core.environment import NETWORK, isolated
from wheelyard.core.job import Job, Needs, Source, made
from wheelyard.core.workspace import Workspace
from wheelyard.plan.cells import Wheel, python_tag
from wheelyard.plan.plan import Plan
from wheelyard.problem import Problem
from wheelyard.tools import images, wheelscope
from wheelyard.torch_table import for_machine

# Debian's torch is outside the virtual environment. The suite moves on, so its torch may no longer be the one that the
# matrix means. Debian's packages work together whatever versions they require of each other, so pip does not check
# them.
DEBIANS_TORCH = """
sed -i s/false/true/ /opt/venv/pyvenv.cfg
python -c 'import sys, torch
print("torch", torch.__version__, "CUDA", torch.version.cuda)
right = torch.__version__.startswith("{torch}.") and not torch.version.cuda
sys.exit(0 if right else "error: [verify] run wants Debian to have torch {torch} without CUDA")' || exit 1
export LD_BIND_NOW=1 PIP_NO_DEPS=1
"""
# In a free-threaded Python, importing a library that was not made for it switches the GIL on.
GIL_IS_OFF = """
import sys, torch, {name}
sys.exit("error: importing {name} has switched the GIL on" if sys._is_gil_enabled() else 0)
"""


def jobs(plan: Plan) -> list[Job]:
    facts = plan.matrix.verify
    for name in facts.tests:
        if not plan.project.files(name):
            raise Problem(
                f"{FILE}: verify.tests names `{name}`, and git knows no such file of this repository"
            )
    tests = Source(plan.project.files(*facts.tests) if facts.tests else {})
    runs = [
        _run_job(plan, w, c, tests) for w in plan.natives for c in plan.cells_run(w, debian=True)
    ]
    runs += [
        _of_variants().job(plan, variant, cells[0])
        for wheel in plan.natives
        for variant in plan.variants(wheel)
        if (cells := plan.cells_run(wheel))
    ]
    linked = [_link_job(plan, w, torch) for w in plan.wheels for torch in plan.links(w)]
    # Runs need the processor, links the network: alternating them makes the most of the machine.
    pairs = itertools.zip_longest(runs, linked)
    return [job for pair in pairs for job in pair if job]


def _of_variants() -> ModuleType:
    """Imports the module by name, so that its code belongs to the variants' jobs alone: a change in it repeats no
    test."""
    return importlib.import_module("wheelyard.steps.variant")


def run(job: Job, workspace: Workspace) -> str:
    if "label" in job.inputs:
        return str(_of_variants().install(workspace))
    return _link(workspace) if job.unit.endswith("-link") else _test(workspace)


def _run_job(plan: Plan, wheel: Wheel, cell: RunCell, tests: Source) -> Job:
    """Returns a job that installs the wheel in a fresh container without network and runs the tests."""
    inputs = {
        "wheel": made(f"repair/{wheel.name}"),
        "image": images.for_verify(plan, cell, wheel.arch),
        "tests": tests,
        "before": DEBIANS_TORCH.format(torch=cell.torch) if cell.debian else "",
        "command": command(plan, cell),
        "code": digest.code(__name__),
    }
    needs = Needs(wheel.arch, engine=True)
    return Job("verify", f"{wheel.name}-{cell.name}", needs, inputs)


def command(plan: Plan, cell: RunCell) -> str:
    """Returns the test command of a cell. For a Python without a GIL, it first checks that importing the package leaves
    the GIL off. The tests then keep it off whatever they import: triton, which torch's compiler needs, switches it
    on."""
    tests = cell.command or plan.test_command
    if not cell.python.endswith("t"):
        return tests
    program = GIL_IS_OFF.format(name=plan.project.import_name)
    return f"python -c {shlex.quote(program)} || exit 1\nexport PYTHON_GIL=0\n{tests}"


def _test(workspace: Workspace) -> str:
    wheel = workspace.file("wheel")
    script = (
        f"{workspace.inputs['before']}pip install --quiet --no-index /wheel/{wheel.name} && "
        f"cp -r /tests /tmp/tests && cd /tmp/tests && {workspace.inputs['command']}"
    )
    options = [
        "--network=none",
        "--env=OMP_NUM_THREADS=1",
        f"--volume={wheel.parent}:/wheel:ro",
        f"--volume={workspace.sources('tests')}:/tests:ro",
    ]
    arguments = workspace.inputs["image"]["arguments"]
    what = f"{wheel.name} on torch {arguments['TORCH']}, Python {arguments['PYTHON']}"
    try:
        images.run(workspace, options, ["sh", "-c", script], what=what)
    except Problem as problem:
        raise Problem(f"{problem}{meaning(workspace.log.read_text(errors='replace'))}") from None
    return summary(workspace.log.read_text(errors="replace"))


def meaning(log: str) -> str:
    """Returns what a failure says about the image, if anything."""
    if missing := re.search(r"No matching distribution found for (.+)", log):
        return (
            f"\nThe wheel requires {missing[1]}, which the image lacks, because pyproject.toml does not name it; add "
            "it in ci/matrix.toml: [verify] requires"
        )
    if missing := re.search(r"No such file or directory: '/tmp/tests/([^']+)'", log):
        return f"\nIf the tests need {missing[1]} of the project, name it in ci/matrix.toml: [verify] tests"
    if missing := re.search(r"ImportError: .+: undefined symbol: (\w+)", log):
        return (
            f"\nIf a source of the project defines {missing[1]}, the sdist lacks that source: wheels are built from "
            "the sdist alone"
        )
    if missing := re.search(r"No module named '(\w+)'", log):
        return f"\nIf only the tests need {missing[1]}, name its package in ci/matrix.toml: [verify] requires"
    if re.search(r"InvalidCxxCompiler|No working C\+\+ compiler|'(g\+\+|gcc|cc)'", log):
        return (
            "\nThe image has no compiler, because users may have none; if the tests need one, name it in "
            "ci/matrix.toml: "
            '[verify] apt = ["g++", "libpython{python}-dev"]'
        )
    return ""


def summary(log: str) -> str:
    """Returns pytest's last line about passed tests, otherwise the last line: a program may print more as it ends."""
    lines = log.strip().splitlines()
    passed = [line for line in lines if re.search(r"\b\d+ passed\b.* in ", line)]
    return (passed or lines)[-1].strip("= ")


def _link_job(plan: Plan, wheel: Wheel, torch: str) -> Job:
    """Returns a job that resolves every symbol of the wheel against that torch's wheel on PyPI."""
    build = plan.torch_build(torch, wheel.arch)
    inputs = {
        "wheel": made(f"repair/{wheel.name}"),
        "torch": build.release,
        "requirement": build.requirement,
        "arch": wheel.arch,
        "index": build.index,
        "python": plan.linked_python(wheel, torch),
        "tools": {"wheelscope": wheelscope.digest()},
        "code": digest.code(__name__),
    }
    return Job("verify", f"{wheel.name}-torch{torch}-link", Needs(network=True), inputs)


def _link(workspace: Workspace) -> str:
    torch = _torch_wheel(workspace)
    wheelscope.link(workspace.file("wheel"), torch, workspace.log)
    return f"every symbol found in {torch.name}"


def _torch_wheel(workspace: Workspace) -> Path:
    """Returns torch's wheel, downloaded once; one with other bytes than the lock names is downloaded again."""
    torch, arch, python, index, requirement = (
        workspace.inputs[name] for name in ("torch", "arch", "python", "index", "requirement")
    )
    folder = workspace.kept("torch")
    found = [
        file
        for file in folder.glob(f"torch-{torch}-*-{python_tag(python)}-*_{arch}.whl")
        if "--hash=" not in requirement or f"--hash=sha256:{sha256(file)}" in requirement
    ]
    if not found:
        part, wanted = workspace.scratch("torch"), workspace.scratch("wanted") / "torch.txt"
        wanted.write_text(requirement)
        shell.run(
            [*isolated("pip", "download", "--quiet", "--no-deps", "--dest", part),
             *for_machine(python, arch), "--requirement", wanted,
             *([f"--index-url={index}"] if index else [])],
            workspace.log, what=f"downloading torch {torch} for {arch}", allow=NETWORK,
        )  # fmt: skip
        (file,) = part.glob("*.whl")
        flush(file)
        found = [Path(shutil.move(file, folder / file.name))]
    return found[0]

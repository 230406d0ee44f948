"""Install: installs the package by name from the index; checks that pip took the gated file, and smoke-tests it."""

import json
import os
from urllib.parse import urlsplit

from packaging.utils import canonicalize_name

from wheelyard.config.matrix import RunCell
from wheelyard.core import digest
from wheelyard.core.job import Job, Needs, made, passed
from wheelyard.core.record import Facts
from wheelyard.core.workspace import Workspace
from wheelyard.plan.cells import Wheel
from wheelyard.plan.plan import Plan
from wheelyard.problem import Problem
from wheelyard.steps import smoke
from wheelyard.tools import images, index

# A virtual environment that an ordinary user may install into, and that also sees the image's packages.
OWN_PLACE = """
export PYTHONPATH="$(python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" PATH="/tmp/own/bin:$PATH" &&
python3 -m venv --without-pip /tmp/own
""".strip()
NOBODY = 65534


def jobs(plan: Plan) -> list[Job]:
    """Returns the jobs: one cell for a wheel that serves all, otherwise each cell that can be run here."""
    here = [wheel for wheel in plan.wheels if wheel.arch == plan.machine]
    pairs = [(wheel, cell) for wheel in here for cell in plan.cells_run(wheel)]
    if plan.strategy == "universal":
        pairs = pairs[:1]
    return [_job(plan, wheel, cell) for wheel, cell in pairs]


def _job(plan: Plan, wheel: Wheel, cell: RunCell) -> Job:
    target = plan.options.index
    inputs = {
        "wheel": made(f"repair/{wheel.name}"),
        "sdist": made("build/sdist"),
        "published": passed(f"publish/{target}"),
        "index": target,
        "part": wheel.index_name,
        "own": {"upload": plan.matrix.publish.upload, "simple": plan.matrix.publish.simple},
        "project": plan.project.name,
        "image": images.for_verify(plan, cell, wheel.arch),
        **smoke.spec(plan),
        "code": digest.code(__name__),
    }
    needs = Needs(wheel.arch, engine=True, network=True, secrets=target == "embedded")
    return Job("install", f"{target}-torch{cell.torch}-python{cell.python}", needs, inputs)


def run(job: Job, workspace: Workspace) -> str:
    inputs = workspace.inputs
    ((wheel, digest_of_wheel),) = workspace.recorded("wheel").items()
    output, told = workspace.scratch("report"), workspace.scratch("spec")
    version = wheel.name.split("-")[1]
    (sdist,) = inputs["sdist"].values()
    place = workspace.lasting / "index"
    with index.ready(inputs["index"], place, sdist, inputs["own"]) as whole:
        source = whole.part(inputs["part"]) if inputs["part"] and whole.part else whole
        wanted = inputs["project"] if inputs["part"] else f"{inputs['project']}=={version}"
        checked = smoke.installed_command(inputs, told, f"/wheel/{wheel.name}", "/out/smoke.json")
        script = (
            f"{OWN_PLACE} && {pip_install(inputs['index'], source.simple, wanted)} && {checked}"
        )
        output.chmod(0o777)
        options = [*network(source.simple), *ordinary_user(), *smoke.mounts(told)]
        options += [f"--volume={output}:/out", f"--volume={wheel.parent}:/wheel:ro"]
        what = f"installing {inputs['project']} from {source.name}"
        images.run(workspace, options, ["sh", "-c", script], what=what)
    check_what_pip_took(json.loads((output / "pip.json").read_text()), wheel.name, digest_of_wheel)
    return f"pip took {wheel.name}"


def pip_install(name: str, simple: str, wanted: str) -> str:
    """Returns the command of pip. From TestPyPI it installs no dependencies, as anyone may have taken their names
    there; the image has them."""
    alone = "--no-deps " if name == "testpypi" else ""
    return f"python -m pip install --no-cache-dir {alone}--index-url {simple} --report /out/pip.json {wanted}"


def ordinary_user() -> list[str]:
    """Returns options that run a container as the user who runs the release, but never as root: packages from an index
    may run code while they are installed."""
    user, group = os.geteuid() or NOBODY, os.getegid() or NOBODY
    return [f"--user={user}:{group}", "--env=HOME=/tmp", "--env=USER=user"]


def network(simple: str) -> list[str]:
    """Returns options that give a container this machine's own network only if the index is on this machine."""
    return ["--network=host"] if urlsplit(simple).hostname in index.LOOPBACK else []


def check_what_pip_took(report: Facts, wheel: str, digest_of_wheel: str) -> None:
    """Checks that pip installed the wheel that was gated, byte for byte."""
    name = canonicalize_name(wheel.split("-")[0])
    taken = [
        entry["download_info"]
        for entry in report["install"]
        if canonicalize_name(entry["metadata"]["name"]) == name
    ]
    urls = ", ".join(str(entry["url"]) for entry in taken) or "nothing of that name"
    if not any(
        digest_of_wheel in json.dumps(entry["archive_info"])
        and wheel in str(entry["url"]).replace("%2B", "+")
        for entry in taken
    ):
        raise Problem(f"pip took {urls}, not {wheel} with the sha256 that was gated")

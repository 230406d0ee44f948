"""Tests that a job's inputs are all that its result depends on: after each change, exactly the right steps run again.

The plan is this project's, as on GitHub and for PyPI, made by a copy of the tool. It runs with a step that only writes
down what it was given. So a job runs again if its inputs changed, or if something that it was made from was made anew.
"""

import dataclasses
import os
import pickle
import shutil
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path

import pytest
from repository import ROOT, committed
from wheelyard.core import digest
from wheelyard.core.job import Graph, Job, Needs
from wheelyard.core.progress import Display
from wheelyard.core.record import Record
from wheelyard.core.workspace import Workspace
from wheelyard.run import local
from wheelyard.run.runner import Runner, only_run

PLAN = """
import pickle, sys
from pathlib import Path
from wheelyard import steps
from wheelyard.plan import plan as planning
from wheelyard.plan.plan import Options
plan = planning.load(Options(place="github", index="pypi"), Path(sys.argv[1]))
sys.stdout.buffer.write(pickle.dumps(list(steps.planned(plan).jobs.values())))
"""
# The project's files that its sdist has, and others that belong to it; the tool has a folder of its own.
IN_SDIST = ("README.md", "pyproject.toml", "setup.py", "csrc/add.h", "cuda_ext_example")
BESIDE = ("ci/matrix.toml", "ci/policy.toml", "tests/package", "CHANGELOG.md")

GIVEN_WHEEL = "build/tools/opwright-0.1.0-py3-none-any.whl"  # not tracked: `make tools` makes it
SDIST = {"build/sdist"}
PUBLISHED = {"publish", "install"}
FROM_REPAIR = {"repair", "gate", "verify", "gpu", "smoke", "attest"} | PUBLISHED
FROM_BUILD = {"build"} | FROM_REPAIR
EVERYTHING = {"image"} | FROM_BUILD

Change = tuple[str, str, str]


class Bench:
    """A private project and tool to make changes in, and what a release with them has left."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.project, self.tool = folder, folder / "project", folder / "tool"
        self.program = folder / "wheelscope"
        self.program.write_text("the program")
        (folder / "versions").mkdir()
        for name in (*IN_SDIST, *BESIDE):
            copy(ROOT / name, self.project / name)
        (self.project / GIVEN_WHEEL).parent.mkdir(parents=True)
        (self.project / GIVEN_WHEEL).write_text("a wheel")
        (self.project / ".gitignore").write_text("/build/\n")
        (self.project / "docs/evidence").mkdir(parents=True)  # a new project has none
        (self.project / "docs/evidence/x86_64.json").write_text("{}")
        copy(digest.PACKAGE, self.tool / "wheelyard")
        committed(self.project)
        run(self.planned(), folder / "released")

    def planned(self) -> Graph:
        places = [str(self.folder / "versions"), str(self.tool)]
        clean = {
            n: v for n, v in os.environ.items() if n not in ("RELEASE_FOLDER", "WHEELYARD_MACHINES")
        }
        told = {"PYTHONPATH": os.pathsep.join(places), "WHEELSCOPE": str(self.program)}
        done = subprocess.run(
            [sys.executable, "-c", PLAN, self.project], env={**clean, **told, "PYTHONDONTWRITEBYTECODE": "1"},
            cwd=self.folder, capture_output=True,  # which comes before PYTHONPATH
        )  # fmt: skip
        assert done.returncode == 0, done.stderr.decode()
        jobs = pickle.loads(done.stdout)
        return Graph.of(dataclasses.replace(job, needs=Needs()) for job in jobs)

    def ran_after(self, change: Callable[[], None], release: Path) -> set[str]:
        """Returns the steps that run again after a change; the sdist is told apart from the other builds."""
        shutil.copytree(self.folder / "released", release)
        change()
        ran = run(self.planned(), release)
        return SDIST.intersection(ran) | {n.split("/")[0] for n in ran if n not in SDIST}


def copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        unwanted = shutil.ignore_patterns("__pycache__", "*.so")
        shutil.copytree(source, target, symlinks=True, ignore=unwanted)
    else:
        shutil.copy(source, target)


def run(jobs: Graph, release: Path) -> list[str]:
    """Runs the unfinished jobs; returns the names of the jobs that ran."""
    ran: list[str] = []

    def one(job: Job, workspace: Workspace) -> str:
        ran.append(job.name)
        given = dict(workspace.inputs)
        if job.name in SDIST:  # does not contain every file of the project
            given = {p: d for p, d in given["sources"].items() if p.startswith(IN_SDIST)}
        for pattern in job.outputs:
            file = workspace.out / pattern.removeprefix("?").replace("*", job.unit)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(digest.of(given))
        return ""

    step = types.SimpleNamespace(run=one)
    with only_run(release) as record:
        assert isinstance(record, Record)
        here = local.Here(release, Display())
        place = local.Local(release, lambda _: step, here)  # type: ignore[arg-type,return-value]
        Runner(jobs, record, here.display, place).run(list(jobs.jobs.values()), force=False)
    return ran


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("bench"))


def test_nothing_runs_again_without_a_change(bench: Bench, tmp_path: Path) -> None:
    assert bench.ran_after(lambda: None, tmp_path / "release") == set()


@pytest.mark.parametrize("library", ["zlib.ZLIB_RUNTIME_VERSION", "platform.python_version"])
def test_what_compresses_is_an_input(bench: Bench, tmp_path: Path, library: str) -> None:
    """Another zlib, or another Python's, writes other bytes for the same files."""
    start, module = bench.folder / "versions/sitecustomize.py", library.split(".")[0]
    value = "lambda: '3.99.0'" if "python" in library else "'1.3.1.zlib-ng'"
    try:
        ran = bench.ran_after(
            lambda: start.write_text(f"import {module}\n{library} = {value}\n") and None,
            tmp_path / "release",
        )
    finally:
        start.unlink()
    assert ran == SDIST | FROM_BUILD


MATRIX = "project/ci/matrix.toml"
TOOL = "tool/wheelyard"
CELLS = [
    line
    for line in (ROOT / "ci/matrix.toml").read_text().splitlines(keepends=True)
    if line.startswith("  { torch = ") and "slow" not in line
]
# Changes, by the steps that run again: a file to which a line is added, or a file, a text in it, its replacement.
GROUPS: list[tuple[set[str], dict[str, str | Change]]] = [
    (SDIST | FROM_BUILD, {
        "a kernel": "project/csrc/add.h",
        "the package": "project/cuda_ext_example/_add.py",
        "the README, which is in the wheel": "project/README.md",
        "setup.py": "project/setup.py",
        "the targets of the toolkit": (MATRIX, '"7.0", "8.0+PTX"', '"7.0", "8.6+PTX"'),
        "build.environment": (MATRIX, 'OPWRIGHT_CUDA = "on"', 'OPWRIGHT_CUDA = "yes"'),
        "a wheel that the build requires": f"project/{GIVEN_WHEEL}",
        "build.before": (MATRIX, "[build]\n", '[build]\nbefore = "true"\n'),
        "build.downloads": (
            MATRIX, "[build]\n", f'[build]\ndownloads = [{{ url = "https://a/b", sha256 = "{"0" * 64}" }}]\n',
        ),
        "build.source_date_epoch": (MATRIX, "1580601600", "1580601601"),
        "the step build": f"{TOOL}/steps/build.py",
        "what fetches downloads": f"{TOOL}/tools/downloads.py",
        "the code that writes wheels": f"{TOOL}/tools/wheelfile.py",
        "how programs are run": f"{TOOL}/core/shell.py",
        "how containers are run": f"{TOOL}/core/engine.py",
    }),
    (SDIST, {
        "a page that is in no wheel": "project/CHANGELOG.md",
        "a comment in the matrix": MATRIX,
        "a cell that is slow no longer": (MATRIX, ", slow = true", ""),
        "verify.tests, with the same files": (MATRIX, 'tests = ["tests/package"]', 'tests = ["tests"]'),
        "the targets of another toolkit": (MATRIX, '"7.5+PTX", "8.0"', '"7.5+PTX", "8.6"'),
        "build.environment_cpu": (MATRIX, 'OPWRIGHT_CUDA = "off"', 'OPWRIGHT_CUDA = "no"'),
        "a runner's name": (MATRIX, "[arch.x86_64]\n", '[arch.x86_64]\nrunner = "big"\n'),
    }),
    (SDIST | {"verify"} | PUBLISHED, {
        "a test": "project/tests/package/test_ops.py",
        "a new test": "project/tests/package/test_new.py",
        "verify.command": (MATRIX, "not test_without_a' .\"\nrun", "add' .\"\nrun"),
        "a cell's own command": (MATRIX, " or rms_norm-transform_of_way", ""),
        "a torch that wheels are only linked to": (MATRIX, '"2.13.0"', '"2.13.1"'),
    }),
    (SDIST | {"gate"} | PUBLISHED, {
        "the policy": "project/ci/policy.toml",
        "a CUDA build more": (MATRIX, '["13.0", "13.2", "cpu"]', '["12.9", "13.0", "13.2", "cpu"]'),
        "twine": "versions/twine",
    }),
    (SDIST | PUBLISHED, {"a cell less": (MATRIX, CELLS[1], "")}),
    (SDIST | {"image", "verify"} | PUBLISHED, {
        "a cell more": (MATRIX, CELLS[0], CELLS[0] + CELLS[0].replace("2.10", "2.14")),
        "a torch that wheels are run with": (MATRIX, '"2.15.0"', '"2.15.1"'),
    }),
    (SDIST | {"image", "verify", "smoke"} | PUBLISHED, {
        "verify.requires": (MATRIX, "[verify]\n", '[verify]\nrequires = ["einops"]\n'),
        "verify.apt": (MATRIX, '"openssl", ', '"openssl", "time", '),
    }),
    (SDIST | {"smoke", "gpu"} | PUBLISHED, {
        "smoke.spec": (MATRIX, "--smoke-spec", "--smoke-spec-of-old"),
        "smoke.command": (MATRIX, "[smoke]\n", '[smoke]\ncommand = "true"\n'),
    }),
    (SDIST | {"gpu"} | PUBLISHED, {
        "evidence": "project/docs/evidence/x86_64.json",
        "publish.gpu_evidence": (MATRIX, '["x86_64"]', '["x86_64", "aarch64"]'),
    }),
    (SDIST | EVERYTHING, {
        "the torch that wheels are built on": (MATRIX, '"2.10.0"', '"2.10.1"'),
        "the toolkit of all wheels": (MATRIX, 'universal = { toolkit = "12.9"', 'universal = { toolkit = "13.0"'),
        "the Dockerfile": "tool/wheelyard/docker/Dockerfile",
        "how Python is installed": "tool/wheelyard/docker/python.sh",
        "how torch is installed": "tool/wheelyard/docker/torch.sh",
        "what builds": "tool/wheelyard/docker/build.lock",
        "the toolkit's packages": "tool/wheelyard/docker/toolkits/12.9.lock",
    }),
    (SDIST | FROM_REPAIR, {
        "repair.exclude": (MATRIX, "[publish]\n", '[repair]\nexclude = ["libx.so"]\n\n[publish]\n'),
    }),
    (FROM_REPAIR, {
        "the step repair": f"{TOOL}/steps/repair.py",
        "the SBOM's code": f"{TOOL}/tools/sbom.py",
        "auditwheel": "versions/auditwheel",
        "patchelf": "versions/patchelf",
        "wheelscope": "wheelscope",
    }),
    ({"gate"} | PUBLISHED, {
        "the step gate": f"{TOOL}/steps/gate.py",
        "check-wheel-contents": "versions/check-wheel-contents",
    }),
    ({"verify"} | PUBLISHED, {"the step verify": f"{TOOL}/steps/verify.py"}),
    ({"smoke", "gpu"} | PUBLISHED, {
        "the step smoke": f"{TOOL}/steps/smoke.py",
        "the smoke test": f"{TOOL}/programs/smoke.py",
    }),
    ({"gpu"} | PUBLISHED, {
        "the step gpu": f"{TOOL}/steps/gpu.py",
        "what evidence is": f"{TOOL}/tools/evidence.py",
    }),
    ({"attest"} | PUBLISHED, {
        "the step attest": f"{TOOL}/steps/attest.py",
        "pypi-attestations": "versions/pypi-attestations",
    }),
    (PUBLISHED, {
        "the step publish": f"{TOOL}/steps/publish.py",
        "the indexes": f"{TOOL}/tools/index.py",
    }),
    ({"install"}, {"the step install": f"{TOOL}/steps/install.py"}),
    (set(), {
        "the report": f"{TOOL}/report/page.py",
        "the commands": f"{TOOL}/cli.py",
        "what builds beside torch": "tool/wheelyard/docker/native.lock",
        "a program that nothing runs": "versions/mypy",
    }),
    ({"image", "verify", "smoke"} | PUBLISHED, {
        "what tests": "tool/wheelyard/docker/verify.lock",
        "what tests without a GIL": "tool/wheelyard/docker/verify-t.lock",
    }),
    (FROM_BUILD, {"cibuildwheel": "versions/cibuildwheel"}),
]  # fmt: skip
CHANGES = {what: (change, again) for again, changes in GROUPS for what, change in changes.items()}


@pytest.mark.parametrize("what", CHANGES)
def test_exactly_the_right_steps_run_again(bench: Bench, tmp_path: Path, what: str) -> None:
    change_of, expected = CHANGES[what]
    path, old, new = change_of if isinstance(change_of, tuple) else (change_of, "", "")
    file = bench.folder / path
    if path.startswith("versions/"):
        file = file.with_name(f"{file.name.replace('-', '_')}-999.dist-info") / "METADATA"
        file.parent.mkdir()
    before = file.read_bytes() if file.exists() else None

    def change() -> None:
        text = before.decode() if before else ""
        assert old in text
        added = (
            "Metadata-Version: 2.1\nName: x\nVersion: 999\n"
            if "dist-info" in str(file)
            else "\n# changed\n"
        )
        file.write_text(text.replace(old, new, 1) if old else text + added)

    try:
        assert bench.ran_after(change, tmp_path / "release") == expected
    finally:
        if before is not None:
            file.write_bytes(before)
        else:
            file.unlink()
            if "dist-info" in str(file):
                file.parent.rmdir()

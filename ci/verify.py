"""Verify: the package's tests on each torch and Python that runs here, linking for the rest."""

import itertools
import shutil
import sys
from pathlib import Path

from ci import image, shell
from ci.errors import Problem
from ci.matrix import RunCell
from ci.plan import WheelBuild
from ci.project import ROOT, sha256
from ci.release import Release
from ci.state import Result, Task

WHEELSCOPE = ROOT / "build/bin/wheelscope"


def tasks(release: Release) -> list[Task]:
    native = [build for build in release.builds if build.arch == release.machine]
    runs = [_run_task(release, b.name, c) for b in native for c in _cells(release, b)]
    links = [
        _link_task(release, build.name, build.arch, torch)
        for build in release.builds
        for torch in ([build.torch] if build.torch else release.matrix.torch)
    ]
    # Runs need the processor, links the network: side by side they get most out of the machine.
    pairs = itertools.zip_longest(runs, links)
    return [task for pair in pairs for task in pair if task]


def _cells(release: Release, build: WheelBuild) -> list[RunCell]:
    """The cells to run that a wheel serves."""
    return [
        cell
        for cell in release.matrix.verify.run
        if build.torch in (None, cell.torch) and build.python in (None, cell.python)
    ]


def _run_task(release: Release, name: str, cell: RunCell) -> Task:
    """Installs the wheel in a fresh container without network, runs the tests and the doctor."""
    made_in = image.for_verify(release.matrix, cell)
    wheel = release.wheels()[name]
    tests = sorted((ROOT / "tests/package").glob("*.py"))
    package = release.project.name

    def run(log: Path) -> Result:
        script = (
            f"pip install --quiet --no-deps --no-index /wheel/{wheel.name} && "
            f"python -m {package} && "
            "cp -r /tests /tmp/tests && cd /tmp/tests && "
            "python -m pytest -q --durations=5 -p no:cacheprovider ."
        )
        options = [
            "--network=none",
            "--env=OMP_NUM_THREADS=1",
            f"--volume={wheel.parent}:/wheel:ro",
        ]
        options += [f"--volume={test}:/tests/{test.name}:ro" for test in tests]
        release.engine.run(
            image.ensure(release, made_in, log), options, ["sh", "-c", script], log,
            what=f"{wheel.name} on torch {cell.torch}, Python {cell.python}",
        )  # fmt: skip
        return Result(facts={"verified": "run", "verdict": _last_line(log)})

    inputs = {
        "wheel": release.sha256(name),
        "image": made_in.tag(release),
        "tests": {test.name: sha256(test) for test in tests},
    }
    return Task("verify", f"{name}-torch{cell.torch}-python{cell.python}", inputs, run)


def _last_line(log: Path) -> str:
    return log.read_text(errors="replace").strip().splitlines()[-1].strip("= ")


def _link_task(release: Release, name: str, arch: str, torch: str) -> Task:
    """Resolves every symbol of the wheel against that torch's wheel on PyPI."""
    facts = release.matrix.torch[torch]
    wheel = release.wheels()[name]

    def link(log: Path) -> Result:
        provider = _torch_wheel(release, arch, torch, log)
        shell.run(
            [WHEELSCOPE, "link", wheel, provider],
            log,
            what=f"linking {wheel.name} to torch {torch}",
        )
        return Result(
            facts={"verified": "link", "verdict": f"every symbol found in {provider.name}"}
        )

    inputs = {"wheel": release.sha256(name), "torch": facts.release, "tool": tool_digest()}
    return Task("verify", f"{name}-torch{torch}-link", inputs, link)


def tool_digest() -> str:
    if not WHEELSCOPE.exists():
        raise Problem(f"{WHEELSCOPE.relative_to(ROOT)} is missing; run `make wheelscope`")
    return sha256(WHEELSCOPE)


def _torch_wheel(release: Release, arch: str, torch: str, log: Path) -> Path:
    """torch's wheel, downloaded once; one Python's stands for all: the C++ is alike."""
    facts = release.matrix.torch[torch]
    python = release.matrix.build.python
    folder = release.folder("torch")
    pattern = f"torch-{facts.release}-*_{arch}.whl"
    if not (found := list(folder.glob(pattern))):
        part = folder / f"{torch}-{arch}.part"
        shutil.rmtree(part, ignore_errors=True)
        shell.run(
            [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", part,
             "--only-binary=:all:", f"--platform=manylinux_2_28_{arch}",
             f"--python-version={python}", f"torch=={facts.release}"],
            log, what=f"downloading torch {facts.release} for {arch}",
        )  # fmt: skip
        found = [Path(shutil.move(file, folder)) for file in part.glob("*.whl")]
        part.rmdir()
    return found[0]

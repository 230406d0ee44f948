"""Repair: gives each wheel the manylinux tag it deserves with `auditwheel repair`, then its metadata and its SBOM, then
makes its variants."""

import shutil
import sys
from fnmatch import fnmatchcase
from pathlib import Path

from wheelyard.core import digest, shell
from wheelyard.core.job import Job, Needs, made
from wheelyard.core.record import Facts
from wheelyard.core.workspace import Workspace
from wheelyard.plan.cells import Variant, Wheel, python_tag
from wheelyard.plan.plan import Plan
from wheelyard.tools import images, sbom, wheelfile, wheelscope

# Users have torch's own libraries, and CUDA's, which torch brings; neither is ever copied into a wheel.
EXCLUDED = ["libtorch*", "libc10*"]
# Every torch since 2.10 brings this one under this name, on both architectures. A wheel that links to torch is loaded
# after it, and a second OpenMP runtime in one process would run a second pool of threads.
EXCLUDED_BESIDE_TORCH = ["libgomp.so.1"]
CUDA_LIBRARIES = [
    *("cudart", "cublas", "cudnn", "cufft", "cufile", "cupti", "curand", "cusolver", "cusparse"),
    *("nccl", "nvJitLink", "nvrtc", "nvshmem", "nvToolsExt", "nvtx"),
]
EXCLUDED_CUDA = ["libcuda.so.*", *(f"lib{name}*.so.*" for name in CUDA_LIBRARIES)]
# Libraries that an image's compilers link to, if they are not the image's own.
OLD_LIBRARIES = "/opt/old/libraries"
# Calls auditwheel with an --exclude for each library that the named packages have installed in the image.
PROGRAM = """
import subprocess, sys
from importlib.metadata import PackageNotFoundError, files
packages, command = sys.argv[1].split(), sys.argv[2:]
for package in packages:
    try:
        names = {file.name for file in files(package) or () if ".so" in file.name}
    except PackageNotFoundError:
        continue
    command += [f"--exclude={name}" for name in sorted(names)]
sys.exit(subprocess.call([sys.executable, *command]))
"""


def jobs(plan: Plan) -> list[Job]:
    variants = [variant for wheel in plan.wheels for variant in plan.variants(wheel)]
    return [*(_job(plan, wheel) for wheel in plan.wheels), *map(_variant_job, variants)]


def _job(plan: Plan, wheel: Wheel) -> Job:
    facts = plan.matrix.repair
    # The build's image has the libraries that are copied into the wheel.
    image = images.for_build(plan, wheel) if wheel.torch else None
    inputs = {
        "wheel": made(f"build/{wheel.name}"),
        "exclude": [*EXCLUDED, *(EXCLUDED_CUDA if wheel.torch else []), *facts.exclude],
        "image": image,
        "graft_from": facts.graft_from if image else [],
        "epoch": plan.matrix.build.source_date_epoch,
        "toolkit": wheel.toolkit,
        "runtime": sbom.pinned_runtime(wheel.toolkit),
        "downloads": plan.downloads,
        "torch": wheel.torch,
        "local_version": wheel.local_version,
        "python": python_tag(wheel.python) if wheel.python else None,
        "tools": digest.tools("auditwheel", "patchelf") | {"wheelscope": wheelscope.digest()},
        "compressor": digest.COMPRESSOR,
        "code": digest.code(__name__),
    }
    needs = Needs(image["machine"], engine=True) if image else Needs()
    return Job("repair", wheel.name, needs, inputs, (_pattern(wheel),))


def _pattern(wheel: Wheel, end: str = "") -> str:
    local = f"+{wheel.local_version}" if wheel.local_version else ""
    return f"*-*{local}-*-*-*_{wheel.arch}{end}.whl"


def _variant_job(variant: Variant) -> Job:
    inputs = {
        "wheel": made(f"repair/{variant.wheel.name}"),
        "gpu": variant.gpu,
        "label": variant.label,
        "tools": {"wheelscope": wheelscope.digest()},
        "code": digest.code(__name__),
    }
    pattern = _pattern(variant.wheel, f"-{variant.label}")
    return Job("repair", variant.name, Needs(), inputs, (pattern,))


def run(job: Job, workspace: Workspace) -> str:
    inputs = workspace.inputs
    if "gpu" in inputs:
        wheel, gpu, label = workspace.file("wheel"), inputs["gpu"], inputs["label"]
        wheelscope.thin(wheel, gpu, label, workspace.out, workspace.log)
        return f"{wheel.name} for GPU {gpu}"
    command = ["-I", "-m", "auditwheel", "repair", "--plat", "auto"]
    built = workspace.file("wheel")
    links_torch = needs_torch(wheelscope.show(built))
    excluded = [*inputs["exclude"], *(EXCLUDED_BESIDE_TORCH if links_torch else [])]
    command += [f"--exclude={pattern}" for pattern in excluded]
    if inputs["image"]:
        wheel = _repair_in_image(command, wheelfile.requirements(built), links_torch, workspace)
    else:
        wheel = _repair(command, workspace)
    epoch = inputs["epoch"]
    if inputs["python"] and "-py3-none-" in wheel.name:
        wheel = wheelfile.bind_to_python(wheel, inputs["python"], epoch)
    if inputs["torch"]:
        wheel = wheelfile.bind_to_torch(wheel, inputs["local_version"], inputs["torch"], epoch)
    seen = wheelscope.show(wheel)
    parts = [*sbom.grafted(wheel), *sbom.downloaded(inputs["downloads"])]
    sbom.add(wheel, sbom.document(seen, inputs["runtime"], parts), epoch)
    shutil.move(wheel, workspace.out / wheel.name)
    return wheel.name


def _repair(command: list[str], workspace: Workspace) -> Path:
    """Runs this machine's auditwheel, which can also repair wheels of other architectures."""
    built, output = workspace.file("wheel"), workspace.scratch("repaired")
    shell.run(
        [sys.executable, *command, "--wheel-dir", output, built], workspace.log,
        what=f"repairing {built.name}", env={"SOURCE_DATE_EPOCH": str(workspace.inputs["epoch"])},
    )  # fmt: skip
    (wheel,) = output.glob("*.whl")
    return wheel


def needs_torch(seen: Facts) -> bool:
    """Whether a library of the wheel links to torch, so that torch is loaded before it."""
    needed = {name for library in seen["elf"] for name in library["needed"]}
    return any(fnmatchcase(name, pattern) for name in needed for pattern in EXCLUDED)


def _repair_in_image(
    command: list[str], requirements: list[str], links_torch: bool, workspace: Workspace
) -> Path:
    """Runs the build image's auditwheel, which finds there the libraries that the wheel was linked to."""
    built, output = workspace.file("wheel"), workspace.scratch("repaired")
    folders = ":".join([*workspace.inputs["graft_from"], OLD_LIBRARIES])
    options = ["--network=none", f"--volume={built.parent}:/wheel:ro", f"--volume={output}:/out"]
    options += [f"--env=SOURCE_DATE_EPOCH={workspace.inputs['epoch']}"]
    options += [f"--env=AUDITWHEEL_LD_LIBRARY_PATH={folders}"]
    packages = {name for name in requirements if name != "torch"} | (
        {"torch"} if links_torch else set()
    )
    words = ["python", "-c", PROGRAM, " ".join(sorted(packages)), *command]
    words += ["--wheel-dir=/out", f"/wheel/{built.name}"]
    images.run(workspace, options, words, what=f"repairing {built.name}")
    (wheel,) = output.glob("*.whl")
    return wheel

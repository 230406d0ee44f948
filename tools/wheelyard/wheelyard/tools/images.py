"""Makes the images in which wheels are built and verified. An image's tag is a hash of everything it is made from.

A recipe is plain data in the inputs of the jobs that use the image; whoever runs such a job makes the image first, if
the engine does not have it.
"""

import collections
import configparser
import functools
import hashlib
import importlib.resources
import os
import tempfile
import threading
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from wheelyard.config.matrix import RunCell, with_gil
from wheelyard.core import digest, shell
from wheelyard.core.digest import sha256
from wheelyard.core.engine import IMAGE, Engine
from wheelyard.core.environment import IMAGES, PROXIES
from wheelyard.core.workspace import Workspace
from wheelyard.plan import requirements
from wheelyard.plan.cells import Wheel, cuda_name, python_tag
from wheelyard.plan.plan import Plan, TorchBuild
from wheelyard.problem import Problem
from wheelyard.tools import host_settings, suite

FOLDER = Path(__file__).resolve().parent.parent / "docker"
REGISTRY_SECONDS = 5
CROSS_COMPILER = {"x86_64": "g++-x86-64-linux-gnu", "aarch64": "g++-aarch64-linux-gnu"}
_locks: dict[str, threading.Lock] = collections.defaultdict(threading.Lock)

Recipe = dict[str, Any]


def for_build(plan: Plan, wheel: Wheel) -> Recipe:
    """Returns the recipe of the image that a wheel is built in; a wheel for one torch is built beside it."""
    return _native(plan, wheel) if wheel.torch else _universal(plan, wheel)


def _native(plan: Plan, wheel: Wheel) -> Recipe:
    """Returns the recipe of an image with that torch, its dependencies, a whole CUDA toolkit, and the project's build
    requirements."""
    assert wheel.torch
    assert wheel.cuda
    matrix, machine = plan.matrix, plan.builder(wheel.arch)
    python = wheel.python or plan.build_python
    tag = python_tag(python)
    own = matrix.toolkit[wheel.toolkit].image if wheel.toolkit else ""
    base, reason = ("pypa", "the matrix names it") if own else choose_base(plan, wheel.arch)
    if plan.has_debian_nvcc(wheel):
        base, reason = "debian", f"it has nvcc of CUDA {wheel.toolkit}"
    if base == "pypa":
        bases = {"BASE_IMAGE": own or pypa_reference(matrix.base.pypa.image, machine)}
    else:
        old = matrix.base.debian.native_suite
        bases = {"BASE_IMAGE": old, "PYTHON_IMAGE": _suite(plan, python)}
    arguments = {
        "BASE": base,
        "PYTHON": python,
        "PYTHON_TAG": f"{tag.rstrip('t')}-{tag}",
        "CUDA": wheel.toolkit or "",
        "APT": " ".join(matrix.build.apt),
    }
    torch = plan.torch_build(wheel.torch, wheel.arch, wheel.cuda)
    arguments |= _torch(torch, whole=matrix.build.torch_dependencies)
    arguments["REQUIRES"] = _beside_torch(requirements.to_build(plan), arguments)
    # torch has one build for each CUDA, whatever toolkit compiles for it.
    recipe = _recipe("native", machine, bases, {**arguments, "TORCH_CUDA": cuda_name(wheel.cuda)})
    return recipe | {"why": f"base {base}: {reason}", "lacks": plan.lacks(wheel)}


def _torch(build: TorchBuild, *, whole: bool = True) -> dict[str, str]:
    """Returns the release of torch, its requirements file, and its index if PyPI does not have that build. A torch that
    is not `whole` has none of its dependencies."""
    wanted = build.requirements if whole else build.requirement
    found = {"TORCH": build.release, "TORCH_REQUIREMENTS": wanted}
    found |= {"PIP_INDEX_URL": build.index} if build.index else {}
    return found | ({} if whole else {"TORCH_OPTIONS": "--no-deps"})


def _beside_torch(wanted: str, arguments: dict[str, str]) -> str:
    """Returns requirements that keep the image's torch: the newest torchvision would replace it. A lock names every
    version itself, and a torch without its dependencies must not get them."""
    is_kept = not wanted or " --hash=" in wanted or "TORCH_OPTIONS" in arguments
    return wanted if is_kept else f"{wanted}\ntorch=={arguments['TORCH']}"


def _suite(plan: Plan, python: str) -> str:
    if python not in plan.matrix.python.debian:
        raise Problem(f"base debian has no Python {python}: name its suite in python.debian")
    return plan.matrix.python.debian[python]


def _universal(plan: Plan, wheel: Wheel) -> Recipe:
    """Returns the recipe of an image with the headers of one torch, and compilers for this machine and the other
    one."""
    matrix, machine, python = plan.matrix, plan.builder(wheel.arch), plan.build_python
    tag = python_tag(python)
    toolkits = {f"{w.toolkit}-{w.arch}" for w in plan.buildable}  # as their folders are named
    arguments = {
        "PYTHON": python,
        "PYTHON_TAG": f"{tag.rstrip('t')}-{tag}",
        "TOOLKITS": " ".join(sorted(toolkits)),
    }
    # Only torch's headers are used: any build will do.
    torch = matrix.strategy.universal.torch or next(iter(matrix.torch))
    arguments |= _torch(plan.torch_build(torch, machine), whole=matrix.build.torch_dependencies)
    base, _ = choose_base(plan, wheel.arch)
    if base == "pypa":
        bases = {"BASE_IMAGE": pypa_reference(matrix.base.pypa.image, machine)}
        arguments["BASE"] = "pypa"
    else:
        bases = {"BASE_IMAGE": matrix.base.debian.suite, "PYTHON_IMAGE": _suite(plan, python)}
        others = (CROSS_COMPILER[arch] for arch in matrix.arch if arch != machine)
        arguments["CROSS_COMPILER"] = " ".join(others)
    return _recipe("build", machine, bases, arguments)


def for_verify(plan: Plan, cell: RunCell, arch: str) -> Recipe:
    """Returns the recipe of the image that a cell is run in."""
    facts = plan.matrix.verify
    bases = {"PYTHON_IMAGE": _suite(plan, with_gil(cell.python))}
    arguments = {
        "PYTHON": cell.python,
        "APT": " ".join(facts.apt).replace("{python}", with_gil(cell.python)),
    }
    arguments |= _torch(plan.torch_build(cell.torch, arch))
    if cell.debian:
        # Extensions need libtorch.so, and torch.compile needs headers; Debian has both only in a developers' package.
        arguments["APT"] += " python3-torch libtorch-dev"
        arguments |= {
            "TORCH_REQUIREMENTS": "",
            "TORCH_OPTIONS": "--no-deps",
            "TORCH_CUDA": "debian",
        }
    arguments["REQUIRES"] = _beside_torch(requirements.to_verify(plan), arguments)
    if cell.python.endswith("t"):
        arguments["VERIFY_LOCK"] = "verify-t.lock"
    return _recipe("verify", arch, bases, arguments)


def _recipe(target: str, machine: str, bases: dict[str, str], arguments: dict[str, str]) -> Recipe:
    recipe = {"target": target, "machine": machine, "bases": bases, "arguments": arguments}
    made_from = repr(recipe) + _files_digest(target)
    return recipe | {
        "tag": f"wheelyard-{target}:{hashlib.sha256(made_from.encode()).hexdigest()[:16]}"
    }


@functools.cache
def _files_digest(target: str) -> str:
    """Returns the digest of the files that an image of this kind is made from."""
    scripts = ("python.sh", "install.sh", "torch.sh")
    files = [FOLDER / n for n in ("Dockerfile", f"{target}.lock", "uv.lock", *scripts)]
    if target == "verify":
        files += [FOLDER / "verify-t.lock"]
    else:
        files += [FOLDER / "toolkit.py", *sorted((FOLDER / "toolkits").iterdir())]
    if target == "native":
        files += [FOLDER / n for n in ("verify.lock", "old-compilers.sh", "complete_toolkit.py")]
    return digest.of({file.relative_to(FOLDER).as_posix(): sha256(file) for file in files})


def unit(recipe: Recipe) -> str:
    """Returns a name for people: build-3.11-2.10.0-cuda12.9, native-3.13-2.15.0-cu132."""
    arguments = recipe["arguments"]
    toolkits = sorted({name.split("-")[0] for name in arguments.get("TOOLKITS", "").split()})
    parts = [recipe["target"], arguments["PYTHON"], arguments["TORCH"]]
    parts += [arguments["TORCH_CUDA"]] if "TORCH_CUDA" in arguments else []
    return "-".join([*parts, *(f"cuda{version}" for version in toolkits)])


# --- The base -------------------------------------------------------------------------------------


def choose_base(plan: Plan, arch: str) -> tuple[str, str]:
    """Returns the base and the reason: pypa for native builds if its registry answers, otherwise debian. The matrix or
    `--base` overrides this."""
    wanted = plan.options.base or plan.matrix.build.base
    machine, pypa = plan.builder(arch), plan.matrix.base.pypa.image
    if wanted == "pypa" and arch != machine:
        raise Problem(f"base pypa cannot build for {arch} on {machine}; use --base debian")
    if wanted != "auto":
        return wanted, "as asked"
    if arch != machine:
        return "debian", f"cross build on {machine}"
    if not _registry_answers(pypa_reference(pypa, arch)):
        return "debian", f"the registry of {pypa} does not answer"
    return "pypa", pypa


@functools.cache
def pypa_reference(image: str, arch: str) -> str:
    """Returns the image as cibuildwheel pins it, with its digest. The jobs that sign and upload plan everything, but
    make no image and do not have cibuildwheel."""
    pins = configparser.ConfigParser(inline_comment_prefixes=["#"])
    try:
        data = importlib.resources.files("cibuildwheel.resources")
    except ModuleNotFoundError:
        return f"{image}/not-known-here"
    pins.read_string(data.joinpath("pinned_docker_images.cfg").read_text())
    return pins[arch][image]


@functools.cache
def _registry_answers(reference: str) -> bool:
    """Whether the image's registry can be reached; a refusal is an answer too."""
    try:
        urllib.request.urlopen(f"https://{reference.split('/')[0]}/v2/", timeout=REGISTRY_SECONDS)
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    return True


# --- Making it ------------------------------------------------------------------------------------


def ensure(recipe: Recipe, workspace: Workspace) -> str:
    """Makes the image unless the engine has it; returns its tag."""
    tag = str(recipe["tag"])
    if recipe.get("lacks"):
        raise Problem(recipe["lacks"])
    engine = workspace.engine
    with _locks[tag]:
        if engine.has_ours(tag):
            return tag
        bases = {arg: _base_image(engine, base, workspace) for arg, base in recipe["bases"].items()}
        with tempfile.TemporaryDirectory() as folder:
            secrets = host_settings.files(Path(folder))
            command = [engine.builder, "build", f"--file={FOLDER}/Dockerfile", f"--tag={tag}"]
            command += [f"--target={recipe['target']}", f"--label={IMAGE}={tag}"]
            command += [f"--secret=id={name},src={file}" for name, file in secrets.items()]
            arguments = {**bases, **recipe["arguments"]}
            command += [f"--build-arg={name}={value}" for name, value in arguments.items()]
            command += [f"--build-arg={name}" for name in PROXIES if name in os.environ]
            told = {"DOCKER_BUILDKIT": "1", "BUILDKIT_PROGRESS": "plain"}
            shell.run(
                [*command, FOLDER.resolve()], workspace.log, env=told, allow=IMAGES,
                what=f"building the image {tag}",
            )  # fmt: skip
    return tag


def run(workspace: Workspace, options: list[str], command: list[str], *, what: str) -> None:
    """Runs a command in a fresh container of the job's image, which is made first if it is missing."""
    tag = ensure(workspace.inputs["image"], workspace)
    workspace.engine.run(tag, options, command, workspace.log, what=what)


def _base_image(engine: Engine, base: str, workspace: Workspace) -> str:
    """Returns the engine's name of a base image. Makes it if it is a suite; an image of a registry must be
    reachable."""
    if "/" not in base:
        return suite.ensure(base, engine, workspace)
    if not engine.has_image(base) and not _registry_answers(base):
        raise Problem(f"the registry of {base.split('@')[0]} is not reachable; use --base debian")
    return base

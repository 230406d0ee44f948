"""Image: what wheels are built and verified in, tagged with a hash of all it is made from."""

import collections
import configparser
import hashlib
import importlib.resources
import os
import shutil
import subprocess
import tempfile
import threading
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from ci import shell
from ci.errors import Problem
from ci.matrix import Matrix, RunCell
from ci.plan import WheelBuild, python_tag
from ci.project import ROOT
from ci.release import Release
from ci.state import Result, Task

DOCKERFILE = ROOT / "docker/Dockerfile"
REGISTRY_SECONDS = 5
_suite_locks: dict[str, threading.Lock] = collections.defaultdict(threading.Lock)
CROSS_COMPILER = {"amd64": "g++-x86-64-linux-gnu", "arm64": "g++-aarch64-linux-gnu"}


@dataclass(frozen=True)
class Image:
    """One image: a stage of the Dockerfile on a base, with its arguments."""

    target: str
    base: str  # a Debian suite, or the reference of an image in a registry
    arguments: tuple[tuple[str, str], ...]

    def tag(self, release: Release) -> str:
        files = [DOCKERFILE, ROOT / f"docker/{self.target}.lock"]
        made_from = repr((self, release.machine)).encode() + b"".join(f.read_bytes() for f in files)
        return f"{release.project.name}-{self.target}:{hashlib.sha256(made_from).hexdigest()[:16]}"

    @property
    def unit(self) -> str:
        return "-".join([self.target, *(v for k, v in self.arguments if k in ("PYTHON", "TORCH"))])


def tasks(release: Release) -> list[Task]:
    images = {for_build(release, build) for build in release.builds}
    images |= {for_verify(release.matrix, cell) for cell in release.matrix.verify.run}
    return [
        _task(release, image) for image in sorted(images, key=lambda i: (i.target, i.arguments))
    ]


def _task(release: Release, image: Image) -> Task:
    tag = image.tag(release)

    def make(log: Path) -> Result:
        ensure(release, image, log)
        return Result(facts={"image": tag})

    return Task("image", image.unit, {"image": tag}, make)


def for_build(release: Release, build: WheelBuild) -> Image:
    """The image that a wheel is built in."""
    matrix = release.matrix
    base = choose_base(release, build.arch)
    python = build.python or matrix.build.python
    torch = matrix.torch[build.torch or matrix.extension.stable_abi].release
    other = [facts.debian for arch, facts in matrix.arch.items() if arch != release.machine]
    arguments = {
        "BASE": base,
        "PYTHON": python,
        "PYTHON_TAG": f"{python_tag(python).rstrip('t')}-{python_tag(python)}",
        "TORCH": torch,
    }
    if base == "pypa":
        return Image("build", _pypa_reference(matrix, release.machine), tuple(arguments.items()))
    if python not in matrix.python.debian:
        raise Problem(
            f"base debian has no Python {python}: name its suite in python.debian of ci/matrix.toml"
        )
    arguments["PYTHON_SOURCE"] = matrix.python.debian[python]
    arguments["CROSS_COMPILER"] = " ".join(CROSS_COMPILER[arch] for arch in other)
    return Image("build", matrix.base.debian.suite, tuple(arguments.items()))


def for_verify(matrix: Matrix, cell: RunCell) -> Image:
    """The image that a cell is run in."""
    arguments = {"PYTHON": cell.python, "TORCH": matrix.torch[cell.torch].release}
    return Image("verify", matrix.python.debian[cell.python], tuple(arguments.items()))


def choose_base(release: Release, arch: str) -> str:
    """pypa for native builds where its registry answers, else debian; `release.base` forces one."""
    if release.base != "auto":
        if release.base == "pypa" and arch != release.machine:
            raise Problem(
                f"base pypa has no cross compiler for {arch} on {release.machine}; use BASE=debian"
            )
        return release.base
    if arch != release.machine or not _registry_answers(_pypa_reference(release.matrix, arch)):
        return "debian"
    return "pypa"


def _pypa_reference(matrix: Matrix, arch: str) -> str:
    """The image as cibuildwheel pins it, with its digest."""
    pins = configparser.ConfigParser(inline_comment_prefixes=["#"])
    pins.read_string(
        importlib.resources.files("cibuildwheel.resources")
        .joinpath("pinned_docker_images.cfg")
        .read_text()
    )
    return pins[arch][matrix.base.pypa.image]


def _registry_answers(reference: str) -> bool:
    """Whether the image's registry can be reached; a refusal is an answer too."""
    try:
        urllib.request.urlopen(f"https://{reference.split('/')[0]}/v2/", timeout=REGISTRY_SECONDS)
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    return True


def ensure(release: Release, image: Image, log: Path) -> str:
    """Makes the image unless the engine has it; returns its tag."""
    tag = image.tag(release)
    engine = release.engine.command
    if release.engine.has_image(tag):
        return tag
    is_suite = "/" not in image.base
    base_image = _ensure_suite(release, image.base, log) if is_suite else image.base
    with tempfile.TemporaryDirectory() as folder:
        secrets = _host_settings(Path(folder))
        command = [
            engine,
            "build",
            "--file",
            str(DOCKERFILE),
            "--target",
            image.target,
            "--tag",
            tag,
        ]
        command += [f"--secret=id={name},src={file}" for name, file in secrets.items()]
        for name, value in (("BASE_IMAGE", base_image), *image.arguments):
            command += ["--build-arg", f"{name}={value}"]
        for name in ("http_proxy", "https_proxy", "no_proxy"):
            command += ["--build-arg", name] if name in os.environ else []
        environment = {"DOCKER_BUILDKIT": "1", "BUILDKIT_PROGRESS": "plain"}
        what = f"building the image {tag} on {image.base}"
        try:
            shell.run([*command, "."], log, what=what, env=environment)
        except Problem as problem:
            if not is_suite and not _registry_answers(image.base):
                raise Problem(
                    f"{problem}\n{image.base.split('@')[0]}: its registry is not reachable; "
                    "use BASE=debian"
                ) from None
            raise
    return tag


def _ensure_suite(release: Release, suite: str, log: Path) -> str:
    """A Debian suite as an image: its tag."""
    tag = f"{release.project.name}-{suite}:{release.machine}"
    with _suite_locks[suite]:
        if release.engine.has_image(tag):
            return tag
        if not shutil.which("debootstrap"):
            _install_debootstrap(release)
        root = release.folder("work") / f"suite-{suite}"
        shutil.rmtree(root, ignore_errors=True)
        shell.run(
            ["debootstrap", "--variant=minbase", suite, root, *_debian_mirror()],
            log, what=f"debootstrap of {suite}", env={"DEBIAN_FRONTEND": "noninteractive"},
        )  # fmt: skip
        archive = root.with_suffix(".tar")
        shell.run(
            ["tar", "--numeric-owner", "-C", root, "-cf", archive, "."],
            log,
            what="packing the suite",
        )
        shell.run([release.engine.command, "import", archive, tag], log, what="importing the suite")
        shutil.rmtree(root)
        archive.unlink()
    return tag


def _install_debootstrap(release: Release) -> None:
    release.display.say("installing Debian's debootstrap")
    done = subprocess.run([ROOT / "scripts/need.sh", "debootstrap"], capture_output=True, text=True)
    if done.returncode != 0 or os.geteuid() != 0:
        raise Problem(
            "base debian and the verify images need root and `debootstrap`: run as root after "
            f"`apt-get install debootstrap`, or use BASE=pypa\n{done.stderr.strip()}"
        )


def _debian_mirror() -> list[str]:
    """The mirror in this machine's own apt settings; without one, debootstrap's own choice."""
    wanted = "$(ORIGIN) $(COMPONENT) $(REPO_URI) $(RELEASE)"
    targets = shell.capture(["apt-get", "indextargets", "--format", wanted, "Created-By: Packages"])
    for line in (targets or "").splitlines():
        origin, component, uri, suite = line.split()
        if (origin, component) == ("Debian", "main") and "-" not in suite:
            return [uri]
    return []


def _host_settings(folder: Path) -> dict[str, Path]:
    """This machine's apt settings, pip settings and CA bundle, as files to mount as secrets."""
    wanted = (
        "Acquire::Check-Valid-Until",
        "Acquire::Retries",
        "Acquire::http::",
        "Acquire::https::",
    )
    apt = shell.capture(["apt-config", "dump"]) or ""
    files = {"apt": "".join(f"{line}\n" for line in apt.splitlines() if line.startswith(wanted))}
    pip = shell.capture(["python3", "-m", "pip", "config", "list"]) or ""
    settings = {}
    for line in pip.splitlines():
        name, _, value = line.partition("=")
        settings[name.rpartition(".")[2]] = value.strip("'\"")
    bundle = settings.pop("cert", None) or os.environ.get("SSL_CERT_FILE")
    keep = (
        "index-url",
        "extra-index-url",
        "trusted-host",
        "proxy",
        "default-timeout",
        "timeout",
        "retries",
    )
    lines = [f"{name} = {value}" for name, value in settings.items() if name in keep]
    if bundle:
        lines.append("cert = /run/secrets/ca")
    files["pip"] = "\n".join(["[global]", *lines, ""])
    files["ca"] = Path(bundle).read_text() if bundle else ""
    paths = {name: folder / name for name in files}
    for name, text in files.items():
        paths[name].write_text(text)
    return paths

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
DEBOOTSTRAP = Path("/usr/share/debootstrap/scripts")
REGISTRY_SECONDS = 5
PROXIES = ("http_proxy", "https_proxy", "no_proxy")
_install_lock = threading.Lock()
_suite_locks: dict[str, threading.Lock] = collections.defaultdict(threading.Lock)
CROSS_COMPILER = {"amd64": "g++-x86-64-linux-gnu", "arm64": "g++-aarch64-linux-gnu"}


@dataclass(frozen=True)
class Image:
    """One image: a stage of the Dockerfile, its base images and other arguments."""

    target: str
    bases: tuple[tuple[str, str], ...]  # each a Debian suite, or an image in a registry
    arguments: tuple[tuple[str, str], ...]

    def tag(self, release: Release) -> str:
        files = [DOCKERFILE, ROOT / f"docker/{self.target}.lock"]
        if self.target == "build":
            files += [ROOT / "ci/toolkit.py", *sorted((ROOT / "ci/toolkits").iterdir())]
        made_from = repr((self, release.machine)).encode() + b"".join(f.read_bytes() for f in files)
        return f"ci-{self.target}:{hashlib.sha256(made_from).hexdigest()[:16]}"

    @property
    def unit(self) -> str:
        return "-".join([self.target, *(v for k, v in self.arguments if k in ("PYTHON", "TORCH"))])


def tasks(release: Release) -> list[Task]:
    images = {for_build(release, build) for build in release.builds}
    images |= {for_verify(release.matrix, cell) for cell in release.matrix.verify.run}
    return [_task(release, i) for i in sorted(images, key=lambda i: (i.target, i.arguments))]


def _task(release: Release, image: Image) -> Task:
    tag = image.tag(release)

    def make(log: Path) -> Result:
        ensure(release, image, log)
        return Result(facts={"image": tag})

    return Task("image", image.unit, {"image": tag}, make)


def for_build(release: Release, build: WheelBuild) -> Image:
    """The image that a wheel is built in."""
    matrix = release.matrix
    python = build.python or matrix.build.python
    tag = python_tag(python)
    arguments = {
        "PYTHON": python,
        "PYTHON_TAG": f"{tag.rstrip('t')}-{tag}",
        "TORCH": matrix.torch[build.torch or matrix.extension.stable_abi].release,
        "TOOLKITS": " ".join(sorted({b.toolkit_name for b in release.plan.builds if b.toolkit})),
    }
    if choose_base(release, build.arch) == "pypa":
        bases = {"BASE_IMAGE": _pypa_reference(matrix, release.machine)}
        arguments["BASE"] = "pypa"
    else:
        if python not in matrix.python.debian:
            raise Problem(f"base debian has no Python {python}: name its suite in python.debian")
        bases = {
            "BASE_IMAGE": matrix.base.debian.suite,
            "PYTHON_IMAGE": matrix.python.debian[python],
        }
        others = [facts.debian for arch, facts in matrix.arch.items() if arch != release.machine]
        arguments["CROSS_COMPILER"] = " ".join(CROSS_COMPILER[arch] for arch in others)
    return Image("build", tuple(bases.items()), tuple(arguments.items()))


def for_verify(matrix: Matrix, cell: RunCell) -> Image:
    """The image that a cell is run in."""
    bases = {"PYTHON_IMAGE": matrix.python.debian[cell.python]}
    arguments = {"PYTHON": cell.python, "TORCH": matrix.torch[cell.torch].release}
    return Image("verify", tuple(bases.items()), tuple(arguments.items()))


def choose_base(release: Release, arch: str) -> str:
    """pypa for native builds where its registry answers, else debian; `release.base` forces one."""
    if arch not in release.bases:
        base, reason = _choice(release, arch)
        release.bases[arch] = base
        release.display.say(f"base image for {arch}: {base} ({reason})")
    return release.bases[arch]


def _choice(release: Release, arch: str) -> tuple[str, str]:
    pypa = release.matrix.base.pypa.image
    if release.base == "pypa" and arch != release.machine:
        raise Problem(f"base pypa cannot build for {arch} on {release.machine}; use BASE=debian")
    if release.base != "auto":
        return release.base, "as asked"
    if arch != release.machine:
        return "debian", f"cross build on {release.machine}"
    if not _registry_answers(_pypa_reference(release.matrix, arch)):
        return "debian", f"the registry of {pypa} does not answer"
    return "pypa", pypa


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
    if release.engine.has_image(tag):
        return tag
    bases = {arg: _base_image(release, base, log) for arg, base in image.bases}
    with tempfile.TemporaryDirectory() as folder:
        command = [release.engine.builder, "build", f"--file={DOCKERFILE}", f"--tag={tag}"]
        command += [f"--target={image.target}"]
        command += [f"--secret=id={n},src={f}" for n, f in _host_settings(Path(folder)).items()]
        command += [f"--build-arg={n}={v}" for n, v in (*bases.items(), *image.arguments)]
        command += [f"--build-arg={name}" for name in PROXIES if name in os.environ]
        environment = {"DOCKER_BUILDKIT": "1", "BUILDKIT_PROGRESS": "plain"}
        shell.run([*command, ROOT], log, what=f"building the image {tag}", env=environment)
    return tag


def _base_image(release: Release, base: str, log: Path) -> str:
    """The engine's name of a base: a suite is made, a registry's image must be reachable."""
    if "/" not in base:
        return _ensure_suite(release, base, log)
    if not release.engine.has_image(base) and not _registry_answers(base):
        raise Problem(f"the registry of {base.split('@')[0]} is not reachable; use BASE=debian")
    return base


def _ensure_suite(release: Release, suite: str, log: Path) -> str:
    """A Debian suite as an image: its tag."""
    tag = f"ci-{suite}:{release.machine}"
    with _suite_locks[suite]:
        if release.engine.has_image(tag):
            return tag
        with _install_lock:
            if not shutil.which("debootstrap"):
                _install_debootstrap(release)
        root = release.folder("work") / f"suite-{suite}"
        shutil.rmtree(root, ignore_errors=True)
        shell.run(
            ["debootstrap", "--variant=minbase", suite, root, _debian_mirror(), *_script(suite)],
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
    packages = ["debootstrap", "debian-archive-keyring"]  # which Ubuntu does not bring by itself
    done = subprocess.run([ROOT / "scripts/need.sh", *packages], capture_output=True, text=True)
    if done.returncode != 0 or os.geteuid() != 0:
        raise Problem(
            "base debian and the verify images need root and `debootstrap`: run as root after "
            f"`apt-get install debootstrap`, or use BASE=pypa\n{done.stderr.strip()}"
        )


def _debian_mirror() -> str:
    """The mirror in this machine's own apt settings; empty for debootstrap's own choice."""
    wanted = "$(ORIGIN) $(COMPONENT) $(REPO_URI) $(RELEASE)"
    targets = shell.capture(["apt-get", "indextargets", "--format", wanted, "Created-By: Packages"])
    for line in (targets or "").splitlines():
        origin, component, uri, suite = line.split()
        if (origin, component) == ("Debian", "main") and "-" not in suite:
            return uri
    return ""


def _script(suite: str) -> list[Path]:
    """A suite newer than this machine's debootstrap is set up like the development suite."""
    return [] if (DEBOOTSTRAP / suite).exists() else [DEBOOTSTRAP / "sid"]


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
    for line in sorted(pip.splitlines(), key=lambda line: line.startswith(":env:")):  # it wins
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

"""Makes an image of a Debian suite with debootstrap. It needs no image registry, and root only inside a container."""

import os
import platform
import secrets
import shutil
import tempfile
from pathlib import Path

from wheelyard.core import debian, shell
from wheelyard.core.engine import IMAGE, Engine
from wheelyard.core.environment import ENGINE, NETWORK
from wheelyard.core.lock import turn
from wheelyard.core.workspace import Workspace
from wheelyard.problem import Problem

ARCHIVE = "http://archive.debian.org/debian"  # where a suite goes some time after its support ends
SCRIPTS = Path("/usr/share/debootstrap/scripts")
# Ubuntu's debootstrap does not bring the keyring by itself.
PACKAGES = ("debootstrap", "debian-archive-keyring", "fakeroot")
ADVICE = f"""base debian and the verify images are made by debootstrap. On Debian or Ubuntu:
  sudo apt-get install {" ".join(PACKAGES)}
Elsewhere, use --base pypa."""
# One fakeroot runs both programs, as it remembers who owns each file; root's programs are not on every user's PATH.
UNPACK = """archive=$1; shift; PATH=$PATH:/usr/sbin:/sbin
debootstrap --foreign --force-check-gpg --variant=minbase "$@" && tar --numeric-owner -C "$2" -cf "$archive" ."""


def ensure(suite: str, engine: Engine, workspace: Workspace) -> str:
    """Makes the image of a suite unless the engine has it; returns its tag."""
    name = f"wheelyard-{suite}:{platform.machine()}"
    if not engine.has_ours(name):
        debian.need(PACKAGES, workspace.machine.say, ADVICE)
        caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "wheelyard"
        caches.mkdir(parents=True, exist_ok=True)
        # A suite made twice has two ids, and the engine shares no layer between images built on them.
        with turn(caches / f"{suite}.turn"):
            if not engine.has_ours(name):
                _make(suite, name, engine, workspace)
    return name


def _make(suite: str, tag: str, engine: Engine, workspace: Workspace) -> None:
    """Unpacks the packages here, which takes no root, and configures them in a container."""
    archive = workspace.scratch(f"suite-{suite}") / "image.tar"
    first = f"{tag}-{secrets.token_hex(4)}"

    def call(command: list[object], what: str) -> None:
        words = [engine.command, *command]
        shell.run(words, workspace.log, what=what, env=engine.told, allow=ENGINE)

    _unpack(suite, archive, workspace)
    call(["import", archive, first], f"importing the packages of {suite}")
    archive.unlink()
    try:
        with engine.labels() as labels:
            name = first.replace(":", "-")
            command = ["/debootstrap/debootstrap", "--second-stage"]
            call(
                ["run", *labels, f"--name={name}", "--network=none", first, *command],
                f"debootstrap of {suite}",
            )
            call(["export", f"--output={archive}", name], f"packing {suite}")
            call(["rm", name], "removing the container")
    finally:
        shell.capture([engine.command, "image", "rm", first])
    call(["import", f"--change=LABEL {IMAGE}={tag}", archive, tag], f"importing {suite}")
    archive.unlink()


def _unpack(suite: str, archive: Path, workspace: Workspace) -> None:
    root = archive.with_name("root")
    # An image that is lost halfway is made anew, so no package need be flushed to the disk, here and later.
    hurry = root / "etc/dpkg/dpkg.cfg.d/unsafe-io"
    hurry.parent.mkdir(parents=True)
    hurry.write_text("force-unsafe-io\n")
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        target = Path(folder) / suite  # debootstrap cannot take a path with spaces
        target.symlink_to(root)

        def fetch(mirror: str) -> None:
            words = [archive, suite, target, mirror, *_script(suite)]
            what = f"debootstrap of {suite}"
            command = ["fakeroot", "sh", "-c", UNPACK, "sh", *words]
            shell.run(command, workspace.log, what=what, allow=NETWORK)

        try:
            fetch(mirror_here())
        except Problem as problem:
            try:
                fetch(ARCHIVE)
            except Problem:
                raise problem from None  # the first says more: the archive lacks suites of today
    shutil.rmtree(root)


def mirror_here() -> str:
    """Returns the mirror in this machine's own apt settings; empty to let debootstrap choose."""
    wanted = "$(ORIGIN) $(COMPONENT) $(REPO_URI) $(RELEASE)"
    targets = shell.capture(["apt-get", "indextargets", "--format", wanted, "Created-By: Packages"])
    for line in (targets or "").splitlines():
        origin, component, uri, suite = line.split()
        if (origin, component) == ("Debian", "main") and "-" not in suite:
            return uri
    return ""


def _script(suite: str) -> list[Path]:
    """Returns debootstrap's script. A suite newer than this machine's debootstrap is set up like the development
    suite."""
    return [] if (SCRIPTS / suite).exists() else [SCRIPTS / "sid"]

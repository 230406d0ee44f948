"""A Debian suite as an image, made by debootstrap: it needs no image registry."""

import os
import platform
import shutil
import tempfile
from pathlib import Path

from wheelyard.core import debian, shell
from wheelyard.core.engine import Engine
from wheelyard.core.environment import ENGINE, NETWORK
from wheelyard.core.lock import turn
from wheelyard.core.workspace import Workspace
from wheelyard.problem import Problem
from wheelyard.tools import known_images

SCRIPTS = Path("/usr/share/debootstrap/scripts")
ADVICE = """base debian and the verify images need root and `debootstrap`: run as root after
`apt-get install debootstrap debian-archive-keyring`, or use --base pypa"""
TURNS = Path("/run")


def ensure(suite: str, engine: Engine, workspace: Workspace) -> str:
    """Makes the image of a suite unless the engine has the one that was made here; returns its tag."""
    tag = f"wheelyard-{suite}:{platform.machine()}"
    if not known_images.is_ours(engine, tag):
        _need_debootstrap(workspace)
        # One made twice has two ids, and the engine shares nothing of what is built on the one with the other.
        with turn(TURNS / f"ci-suite.{suite}"):
            if not known_images.is_ours(engine, tag):
                _make(suite, tag, engine, workspace)
                known_images.note(engine, tag)
    return tag


def _make(suite: str, tag: str, engine: Engine, workspace: Workspace) -> None:
    root = workspace.scratch(f"suite-{suite}")
    # An image that is lost halfway is made anew: no package need be flushed to the disk, here and later.
    hurry = root / "etc/dpkg/dpkg.cfg.d/unsafe-io"
    hurry.parent.mkdir(parents=True)
    hurry.write_text("force-unsafe-io\n")
    with tempfile.TemporaryDirectory(dir=TURNS) as folder:
        target = Path(folder) / suite  # a path without spaces, which debootstrap cannot take
        target.symlink_to(root)
        shell.run(
            ["debootstrap", "--force-check-gpg", "--variant=minbase", suite, target, _mirror(), *_script(suite)],
            workspace.log, what=f"debootstrap of {suite}", allow=NETWORK,
        )  # fmt: skip
    archive = root.with_suffix(".tar")
    pack = ["tar", "--numeric-owner", "-C", root, "-cf", archive, "."]
    shell.run(pack, workspace.log, what="packing the suite")
    command = [engine.command, "import", archive, tag]
    shell.run(command, workspace.log, what="importing the suite", env=engine.told, allow=ENGINE)
    shutil.rmtree(root)
    archive.unlink()


def _need_debootstrap(workspace: Workspace) -> None:
    if os.geteuid() != 0:
        raise Problem(ADVICE)
    # Ubuntu's debootstrap does not bring the keyring by itself.
    debian.need(["debootstrap", "debian-archive-keyring"], workspace.say, ADVICE)


def _mirror() -> str:
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
    return [] if (SCRIPTS / suite).exists() else [SCRIPTS / "sid"]

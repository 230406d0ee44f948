"""What only a build tells: a project's name and packages, from metadata built in the container of its first wheel."""

import email
import tempfile
from pathlib import Path

from wheelyard.core.progress import Display
from wheelyard.core.workspace import Workspace
from wheelyard.init.sources import Found
from wheelyard.plan.plan import Options, load
from wheelyard.problem import Problem
from wheelyard.run.local import Here
from wheelyard.steps.build import GIT_TRUST
from wheelyard.tools import images

SCRIPT = """cp -a /source /tmp/source && cd "/tmp/source/$FOLDER" && python - <<'END'
import pathlib, pyproject_hooks, tomllib
file = pathlib.Path("pyproject.toml")
system = tomllib.loads(file.read_text()).get("build-system", {}) if file.exists() else {}
backend = system.get("build-backend", "setuptools.build_meta:__legacy__")
hooks = pyproject_hooks.BuildBackendHookCaller(".", backend, system.get("backend-path"))
hooks.prepare_metadata_for_build_wheel("/out")
END"""


def build(found: Found, matrix: str, display: Display) -> None:
    """Fills in what reading has left open; `matrix` is what would be written."""
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        (scratch / "ci").mkdir()
        (scratch / found.folder).mkdir(parents=True, exist_ok=True)
        (scratch / "ci/matrix.toml").write_text(matrix.replace('name = ""', 'name = "unknown"', 1))
        plan = load(Options(), scratch)
        recipe = images.for_build(plan, plan.wheels[0])
        here = Here(found.root / "wheelhouse", display)
        log = scratch / "log"
        log.touch()
        workspace = Workspace({}, scratch / "job", log, scratch, found.root, scratch, here)
        display.say(
            f"reading its files leaves its names open: building its metadata in {recipe['tag']}"
        )
        try:
            tag = images.ensure(recipe, workspace)
            options = [
                "--network=none",
                f"--volume={found.repository}:/source:ro",
                f"--env=FOLDER={found.folder}",
                f"--volume={workspace.out}:/out",
            ]
            options += [f"--env={setting}" for setting in GIT_TRUST]
            here.engine().run(
                tag, options, ["sh", "-c", SCRIPT], log, what="building the project's metadata"
            )
        finally:
            here.close()
        _take(found, workspace.out)


def _take(found: Found, out: Path) -> None:
    (info,) = out.glob("*.dist-info")
    message = email.message_from_string((info / "METADATA").read_text())
    found.name, found.reasons["name"] = message["Name"], "its metadata, built in a container"
    found.requires_python = found.requires_python or message["Requires-Python"] or ""
    tops = (info / "top_level.txt").read_text().split() if (info / "top_level.txt").exists() else []
    public = [top for top in tops if not top.startswith("_") and top not in ("tests", "test")]
    wanted = found.name.replace("-", "_")
    if not found.import_name and (wanted in public or len(public) == 1):
        found.import_name = wanted if wanted in public else public[0]
        found.reasons["import"] = "its top_level.txt, built in a container"
    if not found.import_name:
        raise Problem(
            f"what users import is not clear: {', '.join(public) or 'its metadata names nothing'}; write it "
            "into ci/matrix.toml as [project] import_name"
        )

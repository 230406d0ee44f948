"""Asks the build backend for what a project's files leave open: its name, requirements and top-level modules."""

import copy
import shutil
import tempfile
import warnings
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import PathDistribution
from pathlib import Path

import build.env
import pyproject_hooks
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from wheelyard.core.progress import Display
from wheelyard.init.sources import TEST_EXTRAS, Found, find_package, take_test_extra
from wheelyard.plan.project import requirement
from wheelyard.problem import Problem

LEFT_OUT = (".git", ".venv", "venv", "build", "dist", "node_modules", "wheelhouse")
WHY = "its build backend, asked for the metadata"


def required_to_build(found: Found) -> set[str]:
    """Returns the names of the packages that the project's build requires."""
    return _names(found, found.requires)


def needs_torch(found: Found) -> bool:
    """Whether the project's sources or requirements name torch."""
    required = _names(found, [*found.requires, *(found.dependencies or [])])
    return "torch" in required or bool(found.uses.keys() & {"torch", "stable"})


def _names(found: Found, requirements: Iterable[str]) -> set[str]:
    return {canonicalize_name(requirement(text, found.root).name) for text in requirements}


def ask(found: Found, display: Display) -> None:
    """Fills in what the files have left open. The backend is not asked if the build needs torch: that would download
    gigabytes."""
    has_names = found.name and found.import_name and not found.is_import_guessed
    if (has_names and found.dependencies is not None) or "torch" in required_to_build(found):
        return
    display.say("asking the build backend for the names and requirements that its files leave open")
    with (
        warnings.catch_warnings(action="ignore"),  # from the backend, passed on by `build`
        tempfile.TemporaryDirectory() as folder,
        build.env.DefaultIsolatedEnv() as environment,
    ):
        # A build leaves files beside its sources, so it works on a copy, without the history that a version could be
        # made from.
        def left_out(at: str, _: list[str]) -> tuple[str, ...]:
            return LEFT_OUT if Path(at) == found.root else ()

        project = shutil.copytree(
            found.root, Path(folder, "project"), symlinks=True, ignore=left_out
        )
        try:
            builder = build.ProjectBuilder.from_isolated_env(environment, project, runner=_quietly)
            environment.install(builder.build_system_requires)
            needs = builder.get_requires_for_build("wheel")
            environment.install(needs)
            found.setup_requires = sorted(needs)
            info = builder.prepare("wheel", folder)
        except Exception as error:  # anything that the project's own code raises
            what = (str(error).splitlines() or [type(error).__name__])[0]
            display.say(f"it failed ({what}); only the project's files are used")
            return
        if info is None:  # as with meson-python; a build may take hours and want libraries
            display.say(
                f"{found.backend} tells them only by a whole build; only the project's files are used"
            )
            return
        _take(found, PathDistribution(Path(info)))


def _quietly(
    cmd: Sequence[str], cwd: str | None = None, extra_environ: Mapping[str, str] | None = None
) -> None:
    version = {"SETUPTOOLS_SCM_PRETEND_VERSION": "0"}
    pyproject_hooks.quiet_subprocess_runner(cmd, cwd, {**(extra_environ or {}), **version})


def _take(found: Found, said: PathDistribution) -> None:
    if not found.name:
        found.name, found.reasons["name"] = said.name, WHY
    found.requires_python = found.requires_python or str(
        said.metadata.json.get("requires_python", "")
    )
    if found.dependencies is None:
        found.dependencies = [text for text in said.requires or [] if "extra ==" not in text]
    take_test_extra(found, _extras(said.requires or []), "the extra")
    if not found.import_name:
        find_package(found)
    tops = (said.read_text("top_level.txt") or "").split()
    public = [top for top in tops if not top.startswith("_") and top not in ("tests", "test")]
    same = [top for top in public if canonicalize_name(top) == canonicalize_name(found.name)]
    is_wrong = found.is_import_guessed and found.import_name.split(".")[0] not in tops
    if (is_wrong or not found.import_name) and (same or len(public) == 1):
        found.import_name = [*same, *public][0]
        found.reasons["import"] = f"top_level.txt of {WHY}"


def _extras(requires: Iterable[str]) -> dict[str, list[str]]:
    """The requirements of each extra that tests may have."""
    parsed = [Requirement(text) for text in requires if "extra ==" in text]
    return {
        name: texts
        for name in TEST_EXTRAS
        if (texts := [_bare(r) for r in parsed if r.marker and r.marker.evaluate({"extra": name})])
    }


def _bare(requirement: Requirement) -> str:
    requirement = copy.copy(requirement)
    requirement.marker = None
    return str(requirement)


def check_names(found: Found) -> None:
    """Raises unless the project has both names: without them no wheel could be verified."""
    if not found.name:
        raise Problem("no file of the project says its name; run `wheelyard init --name NAME`")
    if not found.import_name:
        raise Problem(
            f"no file says what users of {found.name} import; run `wheelyard init --import NAME`"
        )

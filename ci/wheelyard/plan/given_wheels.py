"""The wheels that a build gets from a folder of the project: what it requires and no index has."""

from packaging.requirements import Requirement
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from wheelyard.core.digest import sha256
from wheelyard.plan.plan import Plan
from wheelyard.problem import Problem


def files(plan: Plan) -> dict[str, str]:
    """The path, below the project's root, and the digest of each wheel that the build requires."""
    return {path: digest for path, digest, _ in _found(plan)}


def without_given(plan: Plan) -> list[str]:
    """What the build requires of an index."""
    given = {name for _, _, name in _found(plan)}
    required = [*plan.project.build_requires, *plan.matrix.build.requires]
    return [text for text in required if canonicalize_name(Requirement(text).name) not in given]


def _found(plan: Plan) -> list[tuple[str, str, str]]:
    folder = plan.matrix.build.wheels
    if not folder:
        return []
    place = plan.project.root / folder
    texts = (*plan.project.build_requires, *plan.matrix.build.requires)
    required = {canonicalize_name(Requirement(text).name): Requirement(text) for text in texts}
    found: list[tuple[str, str, str]] = []
    for file in sorted(place.glob("*.whl")):
        try:
            name, version, _, _ = parse_wheel_filename(file.name)
        except InvalidWheelFilename as error:
            raise Problem(f"{file} has no wheel's name: {error}") from None
        if name in required and required[name].specifier.contains(version, prereleases=True):
            found.append((f"{folder}/{file.name}", sha256(file), name))
    if not found:
        raise Problem(
            f"build.wheels names {folder}, and no wheel there is one that the build requires "
            f"({', '.join(texts) or 'nothing'}); put the wheel into {place}, or take build.wheels out of the matrix"
        )
    return found

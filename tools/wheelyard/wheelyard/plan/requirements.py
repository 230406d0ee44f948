"""Collects what a project's images get besides torch: packages from an index or from a local folder."""

from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from wheelyard.core.digest import sha256
from wheelyard.plan.plan import Plan
from wheelyard.plan.torch_lock import lines_of
from wheelyard.problem import Problem

LOCK = "-r "  # starts a requirement that names a lock, as in pip's own files


def to_build(plan: Plan) -> str:
    """Returns the packages that the build needs from an index, as a requirements file."""
    given = {name for _, _, name in _given(plan)}
    wanted = (t for t in _build(plan) if t.startswith(LOCK) or _name(t) not in given)
    return _file(plan.project.root, list(wanted))


def to_verify(plan: Plan) -> str:
    """Returns the packages that the project and its tests need, as a requirements file."""
    return _file(plan.project.root, _verify(plan))


def by_name_alone(plan: Plan) -> list[str]:
    """Returns what the images install without a hash, so that an index may give other bytes tomorrow."""
    asked = [_verify(plan), _build(plan) if any(wheel.torch for wheel in plan.wheels) else []]
    given = {name for _, _, name in _given(plan)}
    loose = [t for texts in asked if not any(t.startswith(LOCK) for t in texts) for t in texts]
    torch = [] if plan.torch_pins else ["torch"]
    return torch + list(dict.fromkeys(text for text in loose if _name(text) not in given))


def given_wheels(plan: Plan) -> dict[str, str]:
    """Returns the path below the project's root and the digest of each wheel that the build gets from a folder."""
    return {path: digest for path, digest, _ in _given(plan)}


def _build(plan: Plan) -> list[str]:
    return [*plan.project.build_requires, *plan.matrix.build.requires]


def _verify(plan: Plan) -> list[str]:
    return [*plan.project.requires, *plan.matrix.verify.requires]


def _name(text: str) -> str:
    return canonicalize_name(Requirement(text).name)


def _file(root: Path, wanted: list[str]) -> str:
    """Returns lines for pip. If there is a lock, they are its lines alone: pip then refuses anything without a hash in
    it."""
    locks = [text.removeprefix(LOCK).strip() for text in wanted if text.startswith(LOCK)]
    if not locks:
        return "\n".join(wanted)
    lines = [line for lock in locks for line in _locked(root, lock)]
    pins = [Requirement(line.partition(" --hash=")[0]) for line in lines]
    for text in (text for text in wanted if not text.startswith(LOCK)):
        asked = Requirement(text)
        same = (pin for pin in pins if canonicalize_name(pin.name) == _name(text))
        if not any(
            asked.specifier.contains(p.version, prereleases=True) for s in same for p in s.specifier
        ):
            raise Problem(f"{', '.join(locks)} has no {text}, which is required; {_how(locks[0])}")
    return "\n".join(lines)


def _locked(root: Path, lock: str) -> Iterator[str]:
    file = root / lock
    if not file.is_file():
        raise Problem(f"the matrix names {lock}, which is missing; {_how(lock)}")
    for line in lines_of(file.read_text()):
        try:
            is_pinned = str(Requirement(line.partition(" --hash=")[0]).specifier).startswith("==")
        except InvalidRequirement:
            is_pinned = False
        if not is_pinned or " --hash=sha256:" not in line:
            raise Problem(f"{lock} has `{line}`, without a version or hash; {_how(lock)}")
        yield line


def _how(lock: str) -> str:
    source = Path(lock).with_suffix(".in")
    return (
        f"write what is required into {source}, then: uv pip compile --universal --generate-hashes {source} "
        f"--output-file {lock}"
    )


def _given(plan: Plan) -> list[tuple[str, str, str]]:
    folder = plan.matrix.build.wheels
    if not folder:
        return []
    place = plan.project.root / folder
    texts = [text for text in _build(plan) if not text.startswith(LOCK)]
    required = {_name(text): Requirement(text) for text in texts}
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

"""Tests what the images get besides torch: from a lock only packages with a hash, from a folder the wheels that the
build requires."""

import dataclasses
from pathlib import Path

import pytest
from rich.console import Console
from wheelyard.plan import requirements
from wheelyard.plan.plan import Plan
from wheelyard.plan.show import show
from wheelyard.problem import Problem
from wheelyard.steps import build
from wheelyard.tools import images


@pytest.fixture
def with_folder(plan: Plan, tmp_path: Path) -> Plan:
    """Returns the plan of a project that requires my-engine, from an index or from the folder `given`."""
    project = dataclasses.replace(
        plan.project, root=tmp_path, build_requires=("My.Engine==0.1.*", "cmake>=3.25")
    )
    named = plan.edited(build={"wheels": "given", "requires": []})
    return dataclasses.replace(named, project=project)


def put(folder: Path, *names: str) -> None:
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / name).write_text(name)


def test_those_that_the_build_requires(with_folder: Plan, tmp_path: Path) -> None:
    right = "my_engine-0.1.2-py3-none-any.whl"
    put(tmp_path / "given", right, "other-1.0-py3-none-any.whl", "README")
    assert list(requirements.given_wheels(with_folder)) == [f"given/{right}"]
    assert requirements.to_build(with_folder) == "cmake>=3.25"
    before = requirements.given_wheels(with_folder)
    (tmp_path / "given" / right).write_text("other bytes")
    assert requirements.given_wheels(with_folder) != before


@pytest.mark.parametrize("names", [None, (), ("my_engine-0.2-py3-none-any.whl",)])
def test_none_is_an_error(with_folder: Plan, tmp_path: Path, names: tuple[str, ...] | None) -> None:
    if names is not None:
        put(tmp_path / "given", *names)
    with pytest.raises(Problem, match=r"build.wheels names given, .*put the wheel into"):
        requirements.given_wheels(with_folder)


def test_a_file_that_is_no_wheel(with_folder: Plan, tmp_path: Path) -> None:
    put(tmp_path / "given", "my_engine.whl")
    with pytest.raises(Problem, match="has no wheel's name"):
        requirements.given_wheels(with_folder)


def test_without_the_key_nothing_is_installed(plan: Plan) -> None:
    assert requirements.given_wheels(plan.edited(build={"wheels": ""})) == {}
    assert build.with_wheels({}, "make ready") == "make ready"
    assert build.with_wheels({"a.whl": ""}, "make ready").endswith("*.whl && make ready")


HASH = f"--hash=sha256:{'0' * 64}"
LOCKED = f"""# by uv
einops==0.8.1 \\
    {HASH} \\
    {HASH}
numpy==2.4.6 ; python_full_version < '3.12' {HASH}
    # via einops
"""


@pytest.fixture
def locked(plan: Plan, tmp_path: Path) -> Plan:
    """Returns the plan of a project that needs einops, and whose tests' requirements are those of a lock."""
    (tmp_path / "ci").mkdir()
    (tmp_path / "ci/verify.lock").write_text(LOCKED)
    project = dataclasses.replace(plan.project, root=tmp_path, requires=("Einops>=0.8",))
    named = plan.edited(verify={"requires": ["-r ci/verify.lock"]}, build={"wheels": ""})
    return dataclasses.replace(named, project=project)


def test_with_a_lock_every_package_has_a_version_and_a_hash(locked: Plan, tmp_path: Path) -> None:
    arguments = images.for_verify(locked, locked.matrix.verify.run[0], "x86_64")["arguments"]
    assert arguments["REQUIRES"].splitlines() == [
        f"einops==0.8.1 {HASH} {HASH}",
        f"numpy==2.4.6 ; python_full_version < '3.12' {HASH}",
    ]
    assert requirements.by_name_alone(locked) == []
    (tmp_path / "ci/verify.lock").write_text(LOCKED.replace("0000", "1111"))
    other = images.for_verify(locked, locked.matrix.verify.run[0], "x86_64")
    assert other["arguments"] != arguments, "other bytes are another input"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("einops==0.8.1", "einops==0.7", "no Einops>=0.8, which is required; write"),
        ("einops==0.8.1", "other==1", "no Einops>=0.8, which is required; write"),
        ("einops==", "einops>=", "without a version or hash; write"),
        (f" {HASH}\n    # via", "\n    # via", "`numpy.*`, without a version or hash; write"),
        ("# by uv", "--index-url https://elsewhere.example", "without a version or hash; write"),
        ("# by uv", "einops @ https://elsewhere.example/x.whl", "without a version or hash"),
    ],
)
def test_anything_else_in_a_lock_is_refused(
    locked: Plan, tmp_path: Path, old: str, new: str, message: str
) -> None:
    assert old in LOCKED
    (tmp_path / "ci/verify.lock").write_text(LOCKED.replace(old, new))
    with pytest.raises(Problem, match=f"ci/verify.lock .*{message}"):
        requirements.to_verify(locked)


def test_a_lock_that_is_missing(locked: Plan, tmp_path: Path) -> None:
    (tmp_path / "ci/verify.lock").unlink()
    with pytest.raises(Problem, match=r"which is missing; .*uv pip compile --universal"):
        requirements.to_verify(locked)


def test_what_has_no_hash_is_shown(plan: Plan) -> None:
    project = dataclasses.replace(plan.project, requires=("einops>=0.8",))
    loose = dataclasses.replace(plan, project=project, torch_pins={})
    assert requirements.to_verify(loose) == "einops>=0.8"
    console = Console(record=True, width=200)
    show(loose, console)
    assert "without hashes: torch, einops>=0.8;" in console.export_text()
    show(plan, quiet := Console(record=True, width=200))
    assert "without hashes" not in quiet.export_text()

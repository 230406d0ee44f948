"""The wheels that a build gets from a folder: those that it requires, and an error where there is none."""

import dataclasses
from pathlib import Path

import pytest
from wheelyard.plan import given_wheels
from wheelyard.plan.plan import Plan
from wheelyard.problem import Problem
from wheelyard.steps import build


@pytest.fixture
def with_folder(plan: Plan, tmp_path: Path) -> Plan:
    """A project that requires my-engine of an index or of the folder `given`."""
    project = dataclasses.replace(
        plan.project, root=tmp_path, build_requires=("My.Engine==0.1.*", "cmake>=3.25")
    )
    settings = dataclasses.replace(plan.matrix.build, wheels="given", requires=[])
    return dataclasses.replace(
        plan, project=project, matrix=dataclasses.replace(plan.matrix, build=settings)
    )


def put(folder: Path, *names: str) -> None:
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / name).write_text(name)


def test_those_that_the_build_requires(with_folder: Plan, tmp_path: Path) -> None:
    right = "my_engine-0.1.2-py3-none-any.whl"
    put(tmp_path / "given", right, "other-1.0-py3-none-any.whl", "README")
    assert list(given_wheels.files(with_folder)) == [f"given/{right}"]
    assert given_wheels.without_given(with_folder) == ["cmake>=3.25"]
    before = given_wheels.files(with_folder)
    (tmp_path / "given" / right).write_text("other bytes")
    assert given_wheels.files(with_folder) != before


@pytest.mark.parametrize("names", [None, (), ("my_engine-0.2-py3-none-any.whl",)])
def test_none_is_an_error(with_folder: Plan, tmp_path: Path, names: tuple[str, ...] | None) -> None:
    if names is not None:
        put(tmp_path / "given", *names)
    with pytest.raises(Problem, match=r"build.wheels names given, .*put the wheel into"):
        given_wheels.files(with_folder)


def test_a_file_that_is_no_wheel(with_folder: Plan, tmp_path: Path) -> None:
    put(tmp_path / "given", "my_engine.whl")
    with pytest.raises(Problem, match="has no wheel's name"):
        given_wheels.files(with_folder)


def test_without_the_key_nothing_is_installed(plan: Plan) -> None:
    settings = dataclasses.replace(plan.matrix.build, wheels="")
    without = dataclasses.replace(plan, matrix=dataclasses.replace(plan.matrix, build=settings))
    assert given_wheels.files(without) == {}
    assert build.with_wheels({}, "make ready") == "make ready"
    assert build.with_wheels({"a.whl": ""}, "make ready").endswith("*.whl && make ready")

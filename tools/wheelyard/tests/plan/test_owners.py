"""Which job a released file belongs to: its name alone says so, and the plan decides."""

import dataclasses

import pytest
from wheelyard.plan.plan import Options, Plan
from wheelyard.problem import Problem


@pytest.fixture
def both(plan: Plan) -> Plan:
    return dataclasses.replace(plan, options=Options(place="github"))


def name(plan: Plan, rest: str) -> str:
    return f"{plan.project.normalised}-{plan.project.version}{rest}"


def test_each_file_has_one_owner(both: Plan) -> None:
    assert both.owners(name(both, ".tar.gz")) == ["build/sdist"]
    for arch in ("x86_64", "aarch64"):
        wheel = name(both, f"-py3-none-manylinux2014_{arch}.manylinux_2_17_{arch}.whl")
        assert both.owners(wheel) == [f"repair/{arch}"]
        both.check_owners(f"repair/{arch}", [wheel])


@pytest.mark.parametrize(
    "rest",
    [
        "-py3-none-manylinux_2_17_aarch64.manylinux_2_17_x86_64.whl",  # pip installs it on both
        "-py3-none-any.whl",
        "-py3-none-manylinux_2_17_riscv64.whl",
        "+cu130-py3-none-manylinux_2_17_x86_64.whl",
        ".post1-py3-none-manylinux_2_17_x86_64.whl",
        ".zip",
        ".whl",
        "",
    ],
)
def test_a_name_that_no_job_is_for(both: Plan, rest: str) -> None:
    assert both.owners(name(both, rest)) in ([], ["build/sdist"] * (rest == ".zip"))
    with pytest.raises(Problem, match="is not for a file named"):
        both.check_owners("repair/x86_64", [f"folder/{name(both, rest)}"])


def test_another_project(both: Plan) -> None:
    assert both.owners("torch-2.10.0-py3-none-manylinux_2_17_x86_64.whl") == []


def test_a_wheel_for_each_torch_and_python(both: Plan) -> None:
    each = dataclasses.replace(both, options=Options(place="github", strategy="each"))
    for wheel in each.wheels[:40]:
        tag = f"cp{str(wheel.python).replace('.', '')}"
        file = name(each, f"+{wheel.local_version}-{tag.rstrip('t')}-{tag}-linux_{wheel.arch}.whl")
        assert each.owners(file) == [f"repair/{wheel.name}"]

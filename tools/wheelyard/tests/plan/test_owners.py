"""Tests which job a released file belongs to: the plan decides that by its name alone."""

import pytest
from wheelyard.plan.plan import Plan
from wheelyard.problem import Problem


@pytest.fixture
def both(plan: Plan) -> Plan:
    return plan.asked(place="github")


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
    with pytest.raises(Problem, match="may not leave a file named"):
        both.check_owners("repair/x86_64", [f"folder/{name(both, rest)}"])


def test_another_project(both: Plan) -> None:
    assert both.owners("torch-2.10.0-py3-none-manylinux_2_17_x86_64.whl") == []


def test_a_wheel_for_each_torch_and_python(both: Plan) -> None:
    each = both.asked(strategy="each")
    for wheel in each.wheels[:40]:
        tag = f"cp{str(wheel.python).replace('.', '')}"
        file = name(each, f"+{wheel.local_version}-{tag.rstrip('t')}-{tag}-linux_{wheel.arch}.whl")
        assert each.owners(file) == [f"repair/{wheel.name}"]


def test_a_variant_belongs_to_the_job_of_its_label(both: Plan) -> None:
    having = both.edited(wheels={"variants": "gpu"})
    wheel = "-py3-none-manylinux2014_{arch}.manylinux_2_17_{arch}{label}.whl"
    for arch in ("x86_64", "aarch64"):
        for label in ("sm70", "sm120"):
            file = name(both, wheel.format(arch=arch, label=f"-{label}"))
            assert having.owners(file) == [f"repair/{arch}-{label}"]
            assert both.owners(file) == []
    plain, other = (wheel.format(arch="x86_64", label=label) for label in ("", "-sm75"))
    assert having.owners(name(both, plain)) == ["repair/x86_64"]
    assert having.owners(name(both, other)) == []
    with pytest.raises(Problem, match=r"it would be repair/x86_64's"):
        having.check_owners("repair/x86_64-sm70", [name(both, plain)])

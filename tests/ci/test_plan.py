"""The plan: cells by rule, the fewest builds, each cell served, the workflow's JSON."""

import dataclasses
import json
from pathlib import Path

import pytest

from ci import matrix, plan
from ci.errors import Problem

FACTS = matrix.load()


def test_universal_serves_every_cell_with_one_wheel_per_architecture() -> None:
    made = plan.make(FACTS)
    assert [build.arch for build in made.builds] == list(FACTS.arch)
    assert len(made.cells) > 100
    assert all(sum(build.serves(cell) for build in made.builds) == 1 for cell in made.cells)


def test_universal_wheels_can_be_made_with_another_toolkit() -> None:
    assert {build.toolkit for build in plan.make(FACTS, toolkit="13.0").builds} == {"13.0"}
    with pytest.raises(Problem, match=r"no toolkit 11\.8 in the matrix; it has 12\.9"):
        plan.make(FACTS, toolkit="11.8")


def test_each_makes_one_wheel_per_cell() -> None:
    made = plan.make(FACTS, "each")
    assert len(made.builds) == len(made.cells)
    names = [build.name for build in made.builds]
    assert len(set(names)) == len(names)
    assert "x86_64-cu130torch2.15-cp313" in names
    assert all(sum(build.serves(cell) for build in made.builds) == 1 for cell in made.cells)


def test_what_cannot_exist_is_left_out_with_its_reason() -> None:
    made = plan.make(FACTS)
    assert not any((c.torch, c.python) == ("2.15", "3.10") for c in made.cells)
    assert "torch 2.15 has no wheel for Python 3.10" in made.left_out
    assert "torch 2.10 has no cu132 build" in made.left_out
    cudas = {cuda for torch in FACTS.torch.values() for cuda in torch.cuda}
    product = len(FACTS.arch) * len(FACTS.torch) * len(FACTS.python.versions) * len(cudas)
    assert len(made.cells) + sum(made.left_out.values()) == product


def test_a_cuda_without_a_toolkit_is_refused() -> None:
    torch = dataclasses.replace(FACTS.torch["2.15"], cuda=["14.0"], pypi={})
    facts = dataclasses.replace(FACTS, torch={**FACTS.torch, "2.15": torch})
    with pytest.raises(Problem, match=r"no toolkit for CUDA 14\.0"):
        plan.make(facts, "each")


def test_where_a_cell_is_verified() -> None:
    run = plan.Cell("aarch64", "13.2", "2.15", "3.13")
    assert plan.verified_by(FACTS, run, "aarch64") == "run"
    assert plan.verified_by(FACTS, run, "x86_64") == "link"
    assert plan.verified_by(FACTS, dataclasses.replace(run, cuda="13.0"), "aarch64") == "cover"


def test_github_matrix_names_a_native_runner_for_each_job() -> None:
    jobs = json.loads(plan.github(FACTS, plan.make(FACTS)))
    assert {(j["arch"], j["runner"]) for j in jobs["build"]["include"]} == {
        (arch, facts.runner) for arch, facts in FACTS.arch.items()
    }
    assert len(jobs["verify"]["include"]) == len(FACTS.arch) * (len(FACTS.verify.run) + 1)


def test_nothing_in_ci_names_the_package() -> None:
    name = "cuda_ext_example"
    for file in Path(plan.__file__).parent.glob("*.py"):
        assert name not in file.read_text(), f"{file.name} names the package"

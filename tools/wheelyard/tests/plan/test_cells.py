"""Tests the plan: cells by rule, the fewest wheels of each strategy, every cell served by exactly one."""

import dataclasses
from collections import Counter
from typing import Any

import pytest
from repository import ROOT
from wheelyard.config import matrix
from wheelyard.plan import cells
from wheelyard.plan import plan as planning
from wheelyard.plan.cells import Cell
from wheelyard.plan.plan import WAYS, Options, Plan
from wheelyard.problem import Problem

FACTS = matrix.load(ROOT / matrix.FILE)
CELLS, LEFT_OUT = cells.cells(FACTS)
LOADED = planning.load(Options(), ROOT)


@pytest.mark.parametrize("strategy", matrix.STRATEGIES)
def test_every_cell_is_served_by_exactly_one_wheel(strategy: str) -> None:
    made = cells.wheels(FACTS, strategy)
    assert len({wheel.name for wheel in made}) == len(made)
    assert all(sum(wheel.serves(cell) for wheel in made) == 1 for cell in CELLS)


def test_universal_is_one_wheel_an_architecture() -> None:
    assert [wheel.arch for wheel in cells.wheels(FACTS, "universal")] == list(FACTS.arch)
    assert len(CELLS) > 100


def test_universal_wheels_need_a_toolkit_of_the_matrix() -> None:
    """With another strategy in the file, its toolkit need not be there."""
    other = LOADED.edited(strategy={"universal": matrix.Universal("11.8")}).matrix
    with pytest.raises(Problem, match=r"no toolkit 11\.8 in the matrix; it has 12\.9"):
        cells.wheels(other, "universal")


def test_abi3_is_one_wheel_for_each_torch_and_cuda() -> None:
    made = cells.wheels(FACTS, "abi3")
    builds = sum(len(torch.cuda) for torch in FACTS.torch.values())
    assert len(made) == builds * len(FACTS.arch)
    assert "x86_64-cu130torch2.15" in [wheel.name for wheel in made]


def test_each_is_one_wheel_a_cell() -> None:
    made = cells.wheels(FACTS, "each")
    assert len(made) == len(CELLS)
    assert "x86_64-cu130torch2.15-cp313" in [wheel.name for wheel in made]


def test_what_cannot_exist_is_left_out_with_its_reason() -> None:
    assert not any((c.torch, c.python) == ("2.15", "3.10") for c in CELLS)
    assert "torch 2.15 has no wheel for Python 3.10" in LEFT_OUT
    assert "torch 2.10 is not served with cu132" in LEFT_OUT
    cudas = {cuda for torch in FACTS.torch.values() for cuda in torch.cuda}
    product = len(FACTS.arch) * len(FACTS.torch) * len(FACTS.python.versions) * len(cudas)
    assert len(CELLS) + sum(LEFT_OUT.values()) == product


TOOLKITS = {"13.0": "13.0", "13.2": "13.0", "12.6": "12.9", "12.9": "12.9", "cpu": None}


@pytest.mark.parametrize("cuda", TOOLKITS)
def test_a_cuda_is_built_with_the_nearest_toolkit_of_its_major(cuda: str) -> None:
    assert cells.toolkit_for(FACTS, cuda) == TOOLKITS[cuda]


def test_wheels_for_one_torch_are_not_compiled_by_a_toolkit_without_nvcc() -> None:
    clang, nvcc = FACTS.toolkit["12.9"], FACTS.toolkit["13.0"]
    toolkits = {"12.9": clang, "12.4": nvcc, "13.0": nvcc}
    known = LOADED.edited(strategy={"each": matrix.Each()}, toolkit=toolkits).matrix
    assert cells.toolkit_for(known, "12.9") == "12.4"


def test_a_toolkit_of_the_very_version_wins() -> None:
    named = LOADED.edited(strategy={"each": matrix.Each(["13.0", "13.2"])})
    assert cells.toolkit_for(named.matrix, "13.2") == "13.2"


def test_a_cuda_without_a_toolkit_is_refused() -> None:
    torches = {"2.15": dataclasses.replace(FACTS.torch["2.15"], cuda=["14.0"])}
    named = dataclasses.replace(FACTS, torch=torches)
    with pytest.raises(
        Problem, match=r"no toolkit for CUDA 14\.0.* of torch 2\.15 names; .* 12\.9, 13\.0"
    ):
        cells.toolkit_for(named, "14.0")


def test_the_way_of_a_cell_claims_no_more_than_is_done(plan: Plan) -> None:
    """A wheel is linked with the torch of one Python; for the others, only the same ABI is known."""
    here, there = plan.machine, "x86_64" if plan.machine == "aarch64" else "aarch64"
    run = Cell(here, "13.2", "2.15", "3.14")
    assert plan.way(run) == "run"
    assert plan.way(dataclasses.replace(run, arch=there)) == "same ABI"
    assert plan.way(dataclasses.replace(run, arch=there, python="3.11")) == "linked"
    assert plan.way(dataclasses.replace(run, cuda="13.0")) == "inferred"
    counts = Counter(map(plan.way, plan.cells))
    assert counts["linked"] <= sum(len(plan.links(wheel)) for wheel in plan.wheels)
    assert set(counts) == set(WAYS)


def test_a_wheel_of_one_python_is_linked_with_that_pythons_torch() -> None:
    each = Plan(
        LOADED.project, FACTS, Options(strategy="each", base="pypa", place="github"), "x86_64"
    )
    for cell in each.cells:
        assert each.way(cell) in ("run", "linked", "inferred")


def test_a_slow_cell_is_run_where_it_is_asked_for(plan: Plan) -> None:
    """It is run on GitHub, and with --slow. The cell of that Python with a GIL is a different one, and does not
    change."""
    slow, twin = (Cell(plan.machine, "13.0", "2.11", python) for python in ("3.13t", "3.13"))

    def how(cell: Cell, **options: Any) -> str:
        asked = plan.asked(**options)
        runs = [(run.torch, run.python) for run in asked.cells_run(asked.natives[0])]
        found = asked.way(cell)
        assert ((cell.torch, cell.python) in runs) == (found == "run")
        return found

    assert (how(slow), how(twin)) == ("same ABI", "same ABI")
    assert (how(slow, slow=True), how(twin, slow=True)) == ("run", "same ABI")
    assert how(slow, place="github") == "run"


def test_debians_torch_is_run_as_one_without_cuda_and_as_no_other(plan: Plan) -> None:
    asked = plan.asked(slow=True)
    (run,) = (run for run in FACTS.verify.run if run.debian)
    without = Cell(plan.machine, "cpu", run.torch, run.python)
    assert (plan.way(without), asked.way(without)) == ("inferred", "run")
    assert asked.way(dataclasses.replace(without, python="3.13")) == "inferred"
    assert asked.way(dataclasses.replace(without, cuda="13.0")) == "same ABI"
    wheel = asked.natives[0]
    assert run in asked.cells_run(wheel, debian=True)
    assert run not in asked.cells_run(wheel), "what installs from an index takes torch from there"


def test_gpu_targets_are_those_that_the_build_is_told(plan: Plan) -> None:
    wheel = plan.wheels[0]
    assert plan.targets(wheel) == " ".join(FACTS.toolkit["12.9"].targets)
    other = plan.edited(build={"environment": {"TORCH_CUDA_ARCH_LIST": "8.0;9.0"}})
    assert other.targets(wheel) == "8.0 9.0"


def test_without_cells_to_run_the_oldest_and_the_newest_torch_are() -> None:
    silent = LOADED.edited(verify={"run": []})
    assert [(run.torch, run.python) for run in cells.run_cells(silent.matrix)] == [
        ("2.10", "3.11"),
        ("2.15", "3.11"),
    ]

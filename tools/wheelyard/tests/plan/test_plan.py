"""Tests what can be built where: wheels without a machine or an image are left out, and the plan says why."""

import io
import re
from collections import Counter

import pytest
from repository import TOOL
from rich.console import Console
from wheelyard import steps
from wheelyard.core.job import made
from wheelyard.plan import plan as planning
from wheelyard.plan import show
from wheelyard.plan.plan import Options, Plan
from wheelyard.problem import Problem


def with_options(plan: Plan, cross: bool = True, variants: str = "none", **options: str) -> Plan:
    return plan.edited(build={"cross": cross}, wheels={"variants": variants}).asked(**options)


@pytest.mark.parametrize("strategy", ["universal", "abi3", "each"])
@pytest.mark.parametrize("place", ["here", "github"])
@pytest.mark.parametrize("index", ["embedded", "pypi"])
@pytest.mark.parametrize("variants", ["none", "gpu"])
def test_every_plan_is_a_sound_graph(
    plan: Plan, strategy: str, place: str, index: str, variants: str
) -> None:
    """Each job waits only for jobs before it, is plain data, and can be run by a machine of the plan."""
    options = {"strategy": strategy, "place": place, "index": index, "base": "debian"}
    chosen = with_options(plan, variants=variants, **options)
    jobs = steps.planned(chosen).jobs.values()
    assert {job.step for job in jobs} >= set(steps.STEPS)
    for job in jobs:
        assert job.needs.arch in (None, *chosen.machines) or job.needs.gpu


def test_variants_leave_but_no_index_is_sent_them(plan: Plan) -> None:
    for index in ("embedded", "pypi"):
        chosen = with_options(plan, variants="gpu", place="github", index=index)
        labels = {v.label for wheel in chosen.wheels for v in chosen.variants(wheel)}
        assert labels == {"sm70", "sm80", "sm90", "sm100", "sm120"}
        jobs = steps.planned(chosen).jobs
        sent = jobs[f"publish/{index}"].inputs["files"]
        assert sent == made("build/sdist", "repair/x86_64", "repair/aarch64")
        assert jobs[f"publish/{index}"].inputs["variants"] == 10
        assert set(chosen.released) - set(chosen.uploaded) == {
            f"repair/{arch}-{label}" for arch in ("x86_64", "aarch64") for label in labels
        }


def test_variants_need_targets_with_numbers(plan: Plan) -> None:
    told = {"environment": {"TORCH_CUDA_ARCH_LIST": "native"}}
    named = plan.edited(build=told, wheels={"variants": "gpu"})
    with pytest.raises(Problem, match=r"those of x86_64 are `native`; name them by their numbers"):
        steps.planned(named)


def test_the_tables_fit_80_columns(plan: Plan) -> None:
    for options in ({}, {"strategy": "each"}, {"variants": "gpu"}):
        console = Console(width=80, record=True, file=io.StringIO())
        chosen = with_options(plan, **options)
        show.show(chosen, console)
        text = console.export_text()
        assert all(wheel.name in text for wheel in chosen.wheels[: show.SHOWN])
        assert "…" not in text
        assert max(map(len, text.splitlines())) <= 80
        assert "cover" in text
    assert re.search(r"x86_64 +│ sm90 +│ 9.0 and later of 9.x +│ not made yet", text)


def test_the_page_for_users_has_every_cell_once_with_how_it_is_known(plan: Plan) -> None:
    on_github = with_options(plan, place="github")
    text = show.page(on_github)
    found = Counter[tuple[str, str, str, str, str]]()
    for part in text.split("\n## ")[1:]:
        arch, header, _, *rows = [line for line in part.splitlines() if line]
        ways = [way.strip() for way in header.split("|")[3:-1]]
        for row in rows:
            _, torch, cuda, *pythons, _ = (field.strip() for field in row.split("|"))
            for way, listed in zip(ways, pythons, strict=True):
                found.update(
                    (arch, torch, cuda, python, way) for python in listed.split(", ") if python
                )
    cells = [(c.arch, c.torch, c.cuda, c.python, on_github.way(c)) for c in on_github.cells]
    assert found == Counter(cells)
    assert "- Driver: 525.60.13 or newer." in text
    assert "- C library: glibc 2.28 or newer" in text


def test_the_page_of_a_project_without_cuda_names_no_gpu() -> None:
    text = show.page(planning.load(Options(base="debian"), TOOL / "tests/demo"))
    assert "| 2.10 | cpu | 3.11 |" in text
    assert "- GPUs" not in text


def test_a_wheel_that_is_not_in_the_plan_is_named(plan: Plan) -> None:
    with pytest.raises(Problem, match=r"is named \*cu12, other; names are like x86_64, aarch64"):
        _ = plan.asked(wanted=("*cu12", "other")).wheels

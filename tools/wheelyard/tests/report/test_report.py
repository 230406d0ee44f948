"""Tests the report page in a real Chromium: the right cells, sound links, no serious accessibility fault."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_core_python.selenium import Axe
from demo_wheel import make_wheel
from maintenance import browser
from recorded import failed, passed, proof
from repository import ROOT
from selenium.webdriver import Chrome, Keys
from selenium.webdriver.common.by import By
from wheelyard.core.digest import sha256
from wheelyard.core.record import Record
from wheelyard.plan import plan as planning
from wheelyard.plan.cells import Cell
from wheelyard.plan.plan import Options, Plan
from wheelyard.report import facts
from wheelyard.report.page import write
from wheelyard.tools import sbom, static_index

in_browser = pytest.mark.skipif(bool(browser.MISSING), reason=browser.MISSING)
GPU = {"name": "NVIDIA <H200>", "capability": "9.0", "driver": "580"}


def finish(plan: Plan, record: Record, *, failing: str = "") -> Path:
    """Records a whole release, with at most one failing job; returns its page."""
    drafts = record.folder / "drafts"

    def note(name: str, *files: Path) -> None:
        if failing == name:
            failed(record, name, "2 tests failed: <b>test_add</b>")
        else:
            passed(record, name, *files)

    note("build/sdist", make_wheel(drafts, "sdist"))
    part = {"name": "a-static-library", "version": "12.9.79"}
    for wheel in plan.wheels:
        file = make_wheel(drafts, wheel.arch)
        sbom.add(file, {"components": [part]}, 0)
        note(f"repair/{wheel.name}", file)
        note(f"gate/{wheel.name}")
        for torch in plan.matrix.torch:
            note(f"verify/{wheel.name}-torch{torch}-link")
    for cell in plan.matrix.verify.run:
        note(f"verify/aarch64-{cell.name}")
    note("gate/cover")
    note("publish/embedded")
    file = drafts / "x86_64-1.0-py3-none-any.whl"
    evidence = proof(
        wheel=file.name,
        sha256=sha256(file),
        gpu=GPU,
        torch="2.11.0+cu130",
        checks={"my_add float32 cuda shapes": 75},
        tests={"passed": 3},
        timing={"cuda": {"gigabytes_per_second": {"my_fast_add": 4281.2}}},
    )
    (record.folder / "evidence").mkdir()
    (record.folder / "evidence/gpu-x86_64.json").write_text(json.dumps(evidence))
    return write(plan, record)


CELLS = {
    Cell("x86_64", "13.0", "2.11", "3.12"): "gpu",
    Cell("x86_64", "13.0", "2.11", "3.13"): "same-ABI",
    Cell("x86_64", "13.0", "2.11", "3.11"): "linked",
    Cell("x86_64", "12.6", "2.11", "3.12"): "inferred",
    Cell("aarch64", "cpu", "2.10", "3.11"): "run",
    Cell("aarch64", "cpu", "2.10", "3.12"): "same-ABI",
    Cell("aarch64", "13.0", "2.10", "3.11"): "inferred",
    Cell("aarch64", "13.0", "2.11", "3.13"): "same-ABI",
    Cell("aarch64", "13.0", "2.11", "3.13t"): "run",
    Cell("aarch64", "cpu", "2.14", "3.14"): "run",
    Cell("aarch64", "cpu", "2.14", "3.13"): "inferred",
}


def test_each_cell_has_the_strongest_proof(plan: Plan, record: Record) -> None:
    finish(plan, record)
    grid = facts.grid(plan, record)
    assert grid.keys() == set(plan.cells)
    assert {cell: grid[cell] for cell in CELLS} == CELLS


FAILURES = {
    "verify/aarch64-torch2.10-python3.11": (Cell("aarch64", "cpu", "2.10", "3.11"), 1),
    "verify/aarch64-torch2.11-python3.13t": (Cell("aarch64", "13.0", "2.11", "3.13t"), 1),
    "verify/aarch64-torch2.14-python3.14-debian": (Cell("aarch64", "cpu", "2.14", "3.14"), 1),
    "verify/aarch64-torch2.15-link": (Cell("aarch64", "13.2", "2.15", "3.14t"), 7),
    "repair/aarch64": (Cell("aarch64", "12.6", "2.10", "3.14t"), 149),
}


@pytest.mark.parametrize("failing", FAILURES)
def test_a_failure_outweighs_every_proof(plan: Plan, record: Record, failing: str) -> None:
    finish(plan, record, failing=failing)
    cell, count = FAILURES[failing]
    grid = facts.grid(plan, record)
    assert grid[cell] == "failed"
    assert list(grid.values()).count("failed") == count


def test_an_empty_release_has_a_page_too(plan: Plan, record: Record) -> None:
    assert "No file has been made yet" in write(plan, record).read_text()
    assert set(facts.grid(plan, record).values()) == {"open"}


@pytest.fixture(scope="module", params=["", "verify/aarch64-torch2.15-python3.14"])
def page(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the page of a release without and with a failure."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("release") / "release"
        folder.mkdir()
        patch.setenv("RELEASE_FOLDER", str(folder))
        plan = planning.load(Options(), ROOT)
        return finish(plan, Record(folder), failing=request.param)


@pytest.fixture(scope="module", params=["desktop light", "phone light", "phone dark"])
def driver(request: pytest.FixtureRequest) -> Iterator[Chrome]:
    with browser.opened(*request.param.split()) as made:
        yield made


@in_browser
def test_the_grid_shows_labels_beside_colours(page: Path, driver: Chrome) -> None:
    driver.get(page.as_uri())
    rows = driver.find_elements(By.CSS_SELECTOR, "#grid-x86_64 tr")
    texts = [[box.text for box in row.find_elements(By.XPATH, "./*")] for row in rows]
    (row,) = (row for row in texts if row[:2] == ["2.11", "13.0"])
    assert row[2:] == [
        "same ABI",
        "linked",
        "on GPU",
        "same ABI",
        "same ABI",
        "same ABI",
        "same ABI",
        "-",
        "-",
    ]
    colours = {
        box.text: box.value_of_css_property("background-color")
        for box in driver.find_elements(By.CSS_SELECTOR, "#grid-x86_64 td[class]")
    }
    assert len(set(colours.values())) == len(colours)


@in_browser
def test_nothing_is_wider_than_the_screen(page: Path, driver: Chrome) -> None:
    driver.get(page.as_uri())
    wide = driver.execute_script(
        "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    )
    assert wide[0] <= wide[1]


@in_browser
def test_links_lead_somewhere(page: Path, driver: Chrome) -> None:
    driver.get(page.as_uri())
    links = [a.get_attribute("href") or "" for a in driver.find_elements(By.TAG_NAME, "a")]
    assert len(links) >= 9
    for link in links:
        target, _, anchor = link.removeprefix("file://").partition("#")
        assert Path(target).exists(), link
        assert not anchor or driver.find_elements(By.ID, anchor), link


@in_browser
def test_the_keyboard_reaches_links_and_tables(page: Path, driver: Chrome) -> None:
    driver.get(page.as_uri())
    driver.find_element(By.TAG_NAME, "body").send_keys(Keys.TAB)
    assert driver.switch_to.active_element.text == "Skip to the files"
    reached = set()
    for _ in range(40):
        driver.switch_to.active_element.send_keys(Keys.TAB)
        reached.add(driver.switch_to.active_element.get_attribute("aria-label"))
    assert {"Grid of x86_64", "Grid of aarch64"} <= reached


@in_browser
def test_axe_finds_no_serious_fault(page: Path, driver: Chrome) -> None:
    driver.get(page.as_uri())
    found = Axe().run(driver)["violations"]
    serious = [(f["id"], f["nodes"][0]["html"]) for f in found
               if f["impact"] in ("serious", "critical")]  # fmt: skip
    assert serious == []


def test_a_wheel_is_told_with_its_sbom_and_its_gpu(plan: Plan, record: Record) -> None:
    text = finish(plan, record).read_text()
    assert text.count("<dt>SBOM</dt><dd>a-static-library 12.9.79</dd>") == 2
    counts = "75 checks passed; 3 tests passed; my_fast_add 4,281 GB/s"
    assert text.count(f"NVIDIA &lt;H200&gt;, driver 580, torch 2.11.0+cu130; {counts}") == 1
    assert "<dt>run on a GPU</dt><dd>not these bytes</dd>" in text


def test_a_release_that_is_made_again_replaces_its_index(
    plan: Plan, record: Record, tmp_path: Path
) -> None:
    static_index.append(record.folder, "beside", [make_wheel(tmp_path, "beside")])
    for text in ("first", "second"):
        wheel = make_wheel(tmp_path / text, text=text)
        passed(record, f"repair/{plan.wheels[0].name}", wheel)
        write(plan, record)
        beside, own = sorted(record.folder.glob("simple/*/index.html"))
        assert "beside-1.0" in beside.read_text()
        assert own.read_text().count("<a ") == 1
        assert f"{wheel.name}#sha256={sha256(wheel)}" in own.read_text()


def test_what_is_not_published_says_what_is_to_come(plan: Plan, record: Record) -> None:
    for step in ("image", "build"):
        passed(record, f"{step}/x")
    text = write(plan, record).read_text()
    assert "2 jobs passed; still to come: repair, gate, verify, smoke, publish, install" in text


def test_a_failure_is_told_first_and_nothing_is_taken_for_html(plan: Plan, record: Record) -> None:
    text = finish(plan, record, failing="verify/aarch64-torch2.10-link").read_text()
    assert "1 of 24 jobs FAILED" in text
    assert "&lt;b&gt;test_add" in text
    assert "<b>test_add" not in text
    assert "<script" not in text

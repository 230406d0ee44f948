"""Strategy `each` on our own extension: two real wheels, each for one torch, CUDA and Python."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from repository import ROOT
from wheelyard.plan import project
from wheelyard.report import static_index
from wheelyard.tools import wheelscope

pytestmark = pytest.mark.skipif(
    "RELEASE_TESTS" not in os.environ,
    reason="minutes of real container builds; `make test-release` runs them",
)
CELLS = ["cputorch2.10-cp311", "cu130torch2.15-cp311"]


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    wheelhouse = tmp_path_factory.mktemp("each")
    choice = ["--strategy", "each"]
    for cell in CELLS:
        choice += ["--wheel", f"{os.uname().machine}-{cell}"]
    for step in ("build", "repair"):
        done = subprocess.run(
            [sys.executable, "-m", "wheelyard", step, *choice],
            cwd=ROOT,
            env={**os.environ, "WHEELHOUSE": str(wheelhouse)},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
    return sorted(wheelhouse.glob("*.whl"))


def test_each_cell_has_its_own_name(wheels: list[Path]) -> None:
    facts = project.load(ROOT)
    for wheel, cell in zip(wheels, CELLS, strict=True):
        local, python = cell.rsplit("-", 1)
        start = f"{facts.name}-{facts.version}+{local}-{python}-{python}-manylinux_2_"
        assert wheel.name.startswith(start), wheel.name


def test_the_cuda_wheel_has_the_newer_runtime(wheels: list[Path]) -> None:
    shown = [
        subprocess.run([wheelscope.program(), "show", wheel], capture_output=True, text=True)
        for wheel in wheels
    ]
    assert "static runtime 13.0" not in shown[0].stdout
    assert "static runtime 13.0" in shown[1].stdout


def test_pip_finds_each_in_a_static_index(wheels: list[Path], tmp_path: Path) -> None:
    name = project.load(ROOT).name
    place = static_index.write(tmp_path, name, wheels, base=f"file://{wheels[0].parent}/")
    text = (place / "index.html").read_text()
    assert all(wheel.name.replace("+", "%2B") in text for wheel in wheels)

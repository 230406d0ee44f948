"""Tests the GPU's job on a cluster: it goes to the worker that offers a GPU, and its evidence joins the record."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from clusters import Machines, machines, run
from demo_wheel import make_wheel
from recorded import job, passed
from wheelyard.core.digest import sha256
from wheelyard.core.job import Job, Needs, made
from wheelyard.core.record import Record
from wheelyard.problem import Problem
from wheelyard.steps.smoke import PROGRAM
from wheelyard.tools import evidence

STAND_IN = Path(__file__).parents[2] / "stand_ins/gpu-python"
CHECK = {
    "name": "plus",
    "call": "torch.add(x, y)",
    "reference": "torch.add(x, y)",
    "dtypes": ["float32"],
}
SPEC: dict[str, Any] = {
    "smoke": {"spec": None, "checks": [CHECK], "timing": {"name": "plus"}, "command": None},
    "import_name": "plain_ext",
    "program": sha256(PROGRAM),
    "gpu_tests": None,
}


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machines]:
    """Starts a cluster whose workers find a program that reports a GPU."""
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho 9.0\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{Path(sys.executable).parent}:/usr/bin:/bin")
    folder = tmp_path / "machines"
    folder.mkdir()
    with machines(folder) as started:
        yield started


@pytest.fixture
def jobs(tmp_path: Path) -> tuple[Record, list[Job]]:
    """Returns a record with a repaired wheel, and the jobs that repair it and test it on a GPU."""
    (tmp_path / "release").mkdir()
    record, wheel = Record(tmp_path / "release"), make_wheel(tmp_path / "drafts", "plain_ext")
    passed(record, "repair/x", wheel)
    on_gpu = Job(
        "gpu", "x", Needs(gpu=True), {"wheel": made("repair/x"), **SPEC}, ("evidence/gpu-x.json",)
    )
    return record, [job("repair/x", outputs=(wheel.name,)), on_gpu]


def test_its_evidence_joins_the_record(
    there: Machines, jobs: tuple[Record, list[Job]], monkeypatch: pytest.MonkeyPatch
) -> None:
    record, both = jobs
    with pytest.raises(Problem, match="gpu/x needs gpu, which no worker offers"):
        run(there, record, *both)
    monkeypatch.setenv("TORCH_PYTHON", str(STAND_IN))
    there.real_worker("box")
    run(there, record, *both)
    ((path, wheel),) = record.outputs("repair/x").items()
    assert record.jobs["gpu/x"]["facts"]["ran"]["machine"] == "box"
    (found,) = evidence.on_gpu(
        evidence.wanted(SPEC, ["2.10"], path, wheel, None),
        [record.folder / "evidence/gpu-x.json"],
    )
    assert found["sha256"] == wheel
    assert record.outputs("gpu/x") == {
        "evidence/gpu-x.json": sha256(record.folder / "evidence/gpu-x.json")
    }


def test_a_torch_that_sees_no_gpu_says_so(
    there: Machines, jobs: tuple[Record, list[Job]], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch", reason="is asked for a GPU")
    record, both = jobs
    monkeypatch.setenv("TORCH_PYTHON", sys.executable)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    there.real_worker("box")
    with pytest.raises(Problem, match="gpu/x: on box: torch sees no GPU here"):
        run(there, record, *both)
    assert not (record.folder / "evidence").exists()

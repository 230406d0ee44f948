"""A compromised job in the rehearsed workflow: nothing reaches an index, and the message names the job.

An index that behaves badly is no attack: the same jobs publish to it all the same.
"""

import dataclasses
import shutil
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from faulty_index import faulty_proxy
from hostile_jobs import ATTACKS, LATER_ATTACKS
from real_releases import real_release
from rehearsal import Failed, Rehearsal
from rehearsed import PUBLIC, stand_ins
from wheelyard.tools.index import Index

pytestmark = real_release()


@pytest.fixture(scope="module")
def empty(new_index: Callable[[str], Index]) -> list[Index]:
    """Two indexes that stay as they are."""
    return [new_index(f"empty-{name}") for name in PUBLIC]


def attacked(rehearsal: Rehearsal, empty: list[Index], folder: Path) -> Rehearsal:
    """The finished run with artifacts of its own, before anything was published."""
    shutil.copytree(rehearsal.artifacts, folder / "artifacts")
    shutil.copy(rehearsal.signatures, folder)
    (folder / "made").symlink_to(rehearsal.made)
    return dataclasses.replace(
        rehearsal,
        folder=folder,
        environment=stand_ins(folder, empty),
        outputs=dict(rehearsal.outputs),
        uploaders=dict(rehearsal.uploaders),
        printed={},
    )


def stop(run: Rehearsal, job: str, message: str) -> None:
    with pytest.raises(Failed, match=f"(?s){message}") as failed:
        run.run_job(job)
    assert "Traceback" not in failed.value.output


@pytest.mark.parametrize("attack", [*ATTACKS, *LATER_ATTACKS])
def test_nothing_is_published(
    rehearsal: Rehearsal, empty: list[Index], tmp_path: Path, attack: str
) -> None:
    spoil, message = (ATTACKS | LATER_ATTACKS)[attack]
    run = attacked(rehearsal, empty, tmp_path)
    spoil(run.artifacts)
    for artifact in run.artifacts.iterdir():
        run.uploaders.setdefault(artifact.name, "verify")
    stop(run, "pypi", message)
    if attack in ATTACKS:
        stop(run, "testpypi", message)
    assert [where.files("demo_ext") for where in empty] == [{}, {}]


def test_without_an_attack_it_would_be_published(
    rehearsal: Rehearsal, new_index: Callable[[str], Index], tmp_path: Path
) -> None:
    """The suite could not fail if its runs stopped for another reason."""
    open_ones = [new_index(f"open-{name}") for name in PUBLIC]
    run = attacked(rehearsal, open_ones, tmp_path)
    for job in PUBLIC:
        run.run_job(job)
    published = [where.files("demo_ext") for where in open_ones]
    assert published == [rehearsal.signed, rehearsal.signed], "what was signed where it was made"


@pytest.mark.parametrize("fault", [{"drop_every": 3}, {"serve_after": 30}], ids=str)
def test_an_index_that_behaves_badly(
    rehearsal: Rehearsal,
    new_index: Callable[[str], Index],
    tmp_path: Path,
    fault: dict[str, int],
) -> None:
    slow_ones = [new_index(f"{'-'.join(fault).replace('_', '-')}-{name}") for name in PUBLIC]
    run = attacked(rehearsal, slow_ones, tmp_path)
    for job, where in zip(PUBLIC, slow_ones, strict=True):
        with faulty_proxy(where.upload, **fault) as address:
            run.environment[f"INDEX_{job.upper()}"] = address + urlsplit(where.upload).path
            run.run_job(job)
        assert "3 files uploaded" in run.printed[job]
        assert where.files("demo_ext") == rehearsal.signed

"""Tests release.json: a job is done while its inputs and outputs are as recorded, and a job's own claims do not
count."""

import json
from pathlib import Path
from typing import Any

import pytest
from recorded import job, passed
from wheelyard.core import record
from wheelyard.core.job import Graph, Job, made
from wheelyard.core.job import passed as has_passed
from wheelyard.core.record import Record
from wheelyard.problem import Problem


def build(**inputs: Any) -> Job:
    return job("build/x86_64", inputs, ("a.whl",))


@pytest.fixture
def known(tmp_path: Path) -> Record:
    """Returns a record in which one job has passed."""
    folder = tmp_path / "release"
    folder.mkdir()
    made_here = Record(folder)
    (tmp_path / "a.whl").write_text("bytes")
    passed(made_here, "build/x86_64", tmp_path / "a.whl", inputs={"sdist": "1"})
    return made_here


def test_done_survives_a_restart(known: Record) -> None:
    again = Record(known.folder)
    assert again.is_done(build(sdist="1"))
    assert again.jobs["build/x86_64"]["seconds"] == 2.0


def test_other_inputs_are_not_done(known: Record) -> None:
    assert not known.is_done(build(sdist="2"))


def test_a_missing_output_is_not_done(known: Record) -> None:
    (known.folder / "a.whl").unlink()
    assert not known.is_done(build(sdist="1"))
    with pytest.raises(Problem, match=r"a\.whl of build/x86_64 is missing; run `wheelyard build`"):
        known.outputs("build/x86_64")


def test_an_altered_output_is_refused(known: Record) -> None:
    (known.folder / "a.whl").write_text("other bytes")
    with pytest.raises(Problem, match=r"a\.whl was altered after build/x86_64"):
        known.is_done(build(sdist="1"))


def test_a_failure_is_recorded_and_not_done(known: Record) -> None:
    known.failed(build(sdist="1"), {}, "no compiler", 2.0)
    assert not known.is_done(build(sdist="1"))
    assert json.loads(known.file.read_text())["jobs"]["build/x86_64"]["verdict"] == "failed"
    with pytest.raises(Problem, match="`build/x86_64` failed; run `wheelyard build` first"):
        known.outputs("build/x86_64")


def test_a_superseded_output_is_removed(known: Record, tmp_path: Path) -> None:
    (tmp_path / "b.whl").write_text("newer")
    passed(known, "build/x86_64", tmp_path / "b.whl", inputs={"sdist": "2"})
    assert not (known.folder / "a.whl").exists()


def test_killed_before_a_new_output_is_recorded_it_is_made_again(
    known: Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file of that name is no longer the recorded one, although nobody has altered it."""
    (tmp_path / "a.whl").write_text("newer bytes")
    monkeypatch.setattr(known, "_enter", lambda *_, **__: pytest.exit("killed"))
    with pytest.raises(pytest.exit.Exception):
        passed(known, "build/x86_64", tmp_path / "a.whl", inputs={"sdist": "2"})
    assert (known.folder / "a.whl").read_text() == "newer bytes"
    again = Record(known.folder)
    assert not again.is_done(build(sdist="1"))
    assert not again.is_done(build(sdist="2"))


def test_a_damaged_record_says_what_to_do(known: Record) -> None:
    known.file.write_text('{"jobs": ')
    with pytest.raises(Problem, match="delete it to start over"):
        Record(known.folder)


def test_a_reference_becomes_the_digest_of_what_was_made(known: Record) -> None:
    repair = job("repair/x86_64", {"wheel": made("build/x86_64")})
    (digest,) = known.outputs("build/x86_64").values()
    assert known.resolve(repair) == {"wheel": {"a.whl": digest}}


def test_what_passed_on_other_bytes_is_not_what_there_is_now(known: Record, tmp_path: Path) -> None:
    """The gate passed on a wheel that has been built again since."""
    gate = job("gate/x86_64", {"file": made("build/x86_64")})
    passed(known, gate.name, inputs=dict(gate.inputs))
    publish = job("publish/pypi", {"judged": has_passed(gate.name)})
    jobs = Graph.of([build(sdist="1"), gate, publish])
    known.check_ready(publish, jobs)
    (tmp_path / "a.whl").write_text("built again")
    passed(known, "build/x86_64", tmp_path / "a.whl", inputs={"sdist": "1"})
    with pytest.raises(Problem, match=r"a\.whl is not the file that passed `gate/x86_64`"):
        known.check_ready(publish, jobs)


ESCAPES = ["../outside", "/etc/passwd", "logs/../../outside", "evidence/x.json", "a.whl/b.whl"]
ESCAPES += ["", "a b.whl", "a\0.whl", "\x1b[2J.whl", "x" * 300 + ".whl", "./a.whl", "a.whl/"]


@pytest.mark.parametrize("path", ESCAPES)
def test_a_path_that_the_job_is_not_for_is_refused(path: str) -> None:
    with pytest.raises(Problem, match="which is not its own"):
        record.check_path(job("repair/x86_64", outputs=("*.whl",)), path)
    record.check_path(job("repair/x86_64", outputs=("*.whl",)), "a.whl")


def test_each_platform_of_a_variant_must_fit() -> None:
    """pip and uv install a wheel for each platform that its name contains."""
    own = job("repair/x86_64-sm90", outputs=("*-*-*-*-*_x86_64-sm90.whl",))
    record.check_path(own, "a-1-py3-none-manylinux1_x86_64.manylinux_2_5_x86_64-sm90.whl")
    for platforms in ("linux_aarch64", "linux_x86_64.linux_aarch64", "linux_aarch64.linux_x86_64"):
        with pytest.raises(Problem, match="which is not its own"):
            record.check_path(own, f"a-1-py3-none-{platforms}-sm90.whl")


def test_a_link_among_the_results_is_refused(known: Record, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "a.whl").symlink_to("/etc/passwd")
    with pytest.raises(Problem, match="not a plain file"):
        known.passed(build(sdist="1"), {}, folder, {}, 1.0)


def test_a_result_that_is_missing_is_no_pass(known: Record, tmp_path: Path) -> None:
    with pytest.raises(Problem, match=r"made no a\.whl"):
        known.passed(build(sdist="2"), {}, tmp_path / "nothing", {}, 1.0)

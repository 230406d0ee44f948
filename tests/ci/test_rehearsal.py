"""The release workflow, rehearsed: each job in a clean clone, a real index for both public ones."""

import dataclasses
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from rehearsal import Failed, Job, Rehearsal, jobs, use_tools_of
from repository import ROOT
from test_demo_release import copy_of_demo
from wheelyard.core.digest import sha256
from wheelyard.init import files
from wheelyard.tools import index
from wheelyard.tools.index import Index

pytestmark = pytest.mark.skipif(
    "RELEASE_TESTS" not in os.environ,
    reason="minutes of real container builds; `make test-release` runs them",
)
PUBLIC = ("testpypi", "pypi")  # the indexes, and the jobs that publish to them


def git(folder: Path, *words: str) -> str:
    who = ["-c", "user.name=test", "-c", "user.email=test@localhost"]
    command = ["git", *who, *words]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def stand_ins(folder: Path, indexes: list[Index]) -> dict[str, str]:
    """Has the pipeline use these indexes in place of the public ones, a folder as GitHub."""
    return {
        "GH_FOLDER": str(folder / "github"),
        "TWINE_USERNAME": index.USER,
        "TWINE_PASSWORD": indexes[0].password or "",
        **{f"INDEX_{n.upper()}": i.upload for n, i in zip(PUBLIC, indexes, strict=True)},
    }


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo project with a changelog, tagged by the program behind `make tag`."""
    folder = copy_of_demo(tmp_path_factory.mktemp("origin") / "project")
    (folder / "CHANGELOG.md").write_text("# Changelog\n\n## [Unreleased]\n\n- All of it.\n")
    matrix = folder / "ci/matrix.toml"
    matrix.write_text(matrix.read_text().replace("gpu_evidence = []", 'gpu_evidence = ["x86_64"]'))
    with (folder / ".gitignore").open("a") as ignored:
        ignored.write("/.venv\n")
    git(folder, "config", "user.name", "test")
    git(folder, "config", "user.email", "test@localhost")
    git(folder, "add", "--all")
    git(folder, "commit", "--message", "Add a changelog")
    subprocess.run([sys.executable, "-m", "wheelyard", "tag", "1.1.0"], cwd=folder, check=True)
    return folder


@pytest.fixture(scope="module")
def indexes(new_index: Callable[[str], Index]) -> list[Index]:
    return [new_index(name) for name in PUBLIC]


@pytest.fixture(scope="module")
def rehearsal(
    origin: Path, indexes: list[Index], tmp_path_factory: pytest.TempPathFactory
) -> Rehearsal:
    """The whole workflow, run once."""
    folder = tmp_path_factory.mktemp("rehearsal")
    made = Rehearsal(origin, "v1.1.0", folder, stand_ins(folder, indexes))
    use_tools_of(ROOT, made)
    try:
        made.run()
    except Failed as failed:
        pytest.fail(str(failed))
    return made


def test_it_publishes_to_both_indexes(rehearsal: Rehearsal, indexes: list[Index]) -> None:
    for where in indexes:
        assert len(where.files("demo_ext")) == 3
    assert list(rehearsal.printed) == list(jobs(rehearsal.workflows))


def test_the_release_page_has_everything(rehearsal: Rehearsal) -> None:
    names = [file.name for file in (rehearsal.folder / "github").iterdir()]
    for wanted in ("SHA256SUMS", "report.html", "release.json", "demo_ext-1.1.0.tar.gz"):
        assert wanted in names
    assert len([name for name in names if name.endswith(".whl")]) == 2
    assert len([name for name in names if name.endswith(".cyclonedx.json")]) == 2
    command = ["sha256sum", "--check", "--quiet", "SHA256SUMS"]
    subprocess.run(command, cwd=rehearsal.folder / "github", check=True)


def test_a_second_run_uploads_nothing(rehearsal: Rehearsal) -> None:
    rehearsal.printed.clear()
    rehearsal.run("testpypi")
    assert "0 files uploaded, 3 already there" in rehearsal.printed["testpypi"]
    assert "0 files uploaded, 3 already there" in rehearsal.printed["pypi"]
    assert "is public already, with the same checksums" in rehearsal.printed["github"]


def test_a_file_that_was_cut_off_is_sent_again_before_the_page_is_public(
    rehearsal: Rehearsal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    again = dataclasses.replace(
        rehearsal, environment=rehearsal.environment | {"GH_FOLDER": str(tmp_path / "page")}
    )
    monkeypatch.setenv("GH_CUT_OFF", "report.html release.json")
    with pytest.raises(
        Failed, match=r"GitHub does not have report\.html, release\.json as a whole"
    ):
        again.run_job("github")
    assert (tmp_path / "page/.draft").exists()
    monkeypatch.delenv("GH_CUT_OFF")
    again.run_job("github")
    assert not (tmp_path / "page/.draft").exists()
    subprocess.run(
        ["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=tmp_path / "page", check=True
    )


# --- What must stop before anything is uploaded ---------------------------------------------------


@pytest.fixture
def spoilt(
    rehearsal: Rehearsal, new_index: Callable[[str], Index], tmp_path: Path
) -> Iterator[Rehearsal]:
    """The same run with all of its own, to be spoilt; nothing may reach its empty indexes."""
    for name in ("artifacts", "made"):
        shutil.copytree(rehearsal.folder / name, tmp_path / name, symlinks=True)
    shutil.copytree(rehearsal.origin, tmp_path / "origin")
    shutil.copytree(rehearsal.workflows, tmp_path / "workflows")
    empty = [new_index(f"{tmp_path.name.replace('_', '-')}-{name}") for name in PUBLIC]
    yield dataclasses.replace(
        rehearsal,
        origin=tmp_path / "origin",
        folder=tmp_path,
        environment=stand_ins(tmp_path, empty),
        workflows=tmp_path / "workflows",
        outputs=dict(rehearsal.outputs),
        uploaders=dict(rehearsal.uploaders),
        printed={},
    )
    assert [where.files("demo_ext") for where in empty] == [{}, {}]
    assert not (tmp_path / "github").exists()


def stops(run: Rehearsal, message: str, first: str, at: str) -> None:
    """The run from `first` on goes red in the job `at`, with that message."""
    with pytest.raises(Failed, match=f"(?s){message}") as failed:
        run.run(first)
    assert failed.value.job == at


def test_a_tag_that_disagrees_with_the_version(spoilt: Rehearsal) -> None:
    git(spoilt.origin, "tag", "v9.9.9", "v1.1.0^{}")
    spoilt.tag = "v9.9.9"
    git(spoilt.origin, "tag", "--delete", "v1.1.0")
    advice = r"carries v9\.9\.9, but pyproject\.toml says 1\.1\.0.*wheelyard tag 1\.1\.0"
    stops(spoilt, advice, "check", at="check")
    stops(spoilt, advice, "testpypi", at="testpypi")


def test_a_dirty_tree(spoilt: Rehearsal, monkeypatch: pytest.MonkeyPatch) -> None:
    clean = Rehearsal.clone

    def dirty(self: Rehearsal) -> Path:
        clone = clean(self)
        (clone / "stray.txt").touch()
        return clone

    monkeypatch.setattr(Rehearsal, "clone", dirty)
    advice = "uncommitted changes; commit them, tag, and build again"
    stops(spoilt, advice, "check", at="check")
    stops(spoilt, advice, "testpypi", at="testpypi")


def test_wheels_of_other_sources(spoilt: Rehearsal) -> None:
    """The tag was moved to a commit whose sources are not those of the wheels."""
    with (spoilt.origin / "demo_ext/demo.c").open("a") as source:
        source.write("/* changed */\n")
    old = git(spoilt.origin, "rev-parse", "HEAD")
    git(spoilt.origin, "commit", "--all", "--message", "Change something")
    git(spoilt.origin, "tag", "--force", spoilt.tag)
    stops(spoilt, "was made for commit .* run that job again", "testpypi", at="testpypi")
    for record in spoilt.artifacts.glob("*/release.json"):  # each names the commit
        record.write_text(record.read_text().replace(old, git(spoilt.origin, "rev-parse", "HEAD")))
    stops(spoilt, "built from another state of the sources", "testpypi", at="testpypi")


# --- What an earlier job does not hand on ---------------------------------------------------------

# A change of a job in a workflow: the lines to take out or to replace; where it stops, and how.
UPLOAD = "actions/upload-artifact"
HOLES = {
    "gate does not upload": (
        ("gate", lambda job: drop_step(job, UPLOAD)),
        "gate", "verify", "no job before this one has uploaded gate",
    ),
    "gate says nothing of what it judged": (
        ("gate", lambda job: drop_step(job, "wheelyard digests")),
        "gate", "gate", "steps.digests.outputs.digests is not known",
    ),
    "build uploads no wheel": (
        ("build", lambda job: "steps" in job and drop_path(job, "wheelhouse/*.whl")),
        "build", "gate", "whl of repair/.* is missing; run",
    ),
    "wheels does not give the digests": (
        ("gpu", lambda job: job.update(env={"DIGESTS": ""})),
        "gpu", "gpu", "wheels has told nothing",
    ),
    "sign does not upload": (
        ("sign", lambda job: drop_step(job, UPLOAD)),
        "sign", "testpypi", "no job before this one has uploaded sign",
    ),
    "smoke does not upload": (
        ("smoke", lambda job: drop_step(job, UPLOAD)),
        "smoke", "index", r"no job before this one has uploaded smoke-\*",
    ),
    "gpu does not upload": (
        ("gpu", lambda job: drop_step(job, UPLOAD)),
        "gpu", "testpypi", "no job before this one has uploaded gpu",
    ),
    "gpu uploads no evidence": (
        ("gpu", lambda job: drop_path(job, "wheelhouse/evidence/*.json")),
        "gpu", "testpypi", "gpu-x86_64.json of gpu/x86_64 is missing",
    ),
    "verify does not upload": (
        ("verify", lambda job: drop_step(job, UPLOAD)),
        "verify", "index", r"no job before this one has uploaded verify-\*",
    ),
    "testpypi needs nothing": (
        ("testpypi", lambda job: job.pop("needs")),
        "testpypi", "testpypi", "needs.wheels.outputs.digests is not known",
    ),
    "verify does not need plan": (
        ("verify", lambda job: job.update(needs="gate") if "uses" in job else None),
        "verify", "verify", "needs.plan.outputs.jobs is not known",
    ),
    "gate takes nothing over": (
        ("gate", lambda job: drop_step(job, "wheelyard join")),
        "gate", "gate", "`(repair|build)/.*` has not passed yet",
    ),
    "testpypi has no tools": (
        ("testpypi", lambda job: drop_step(job, "make tools-publish")),
        "testpypi", "testpypi", "No such file or directory",
    ),
}  # fmt: skip


def drop_step(job: Job, word: str) -> None:
    if "steps" not in job:  # it calls another workflow, whose job of that name is meant
        return
    kept = [step for step in job["steps"] if word not in step.get("uses", step.get("run"))]
    assert len(kept) == len(job["steps"]) - 1
    job["steps"] = kept


def drop_path(job: Job, path: str) -> None:
    (upload,) = (step for step in job["steps"] if UPLOAD in step.get("uses", ""))
    assert path in upload["with"]["path"]
    upload["with"]["path"] = upload["with"]["path"].replace(path, "")


@pytest.mark.parametrize("hole", HOLES)
def test_what_is_not_handed_on_is_missed(spoilt: Rehearsal, hole: str) -> None:
    (name, change), first, at, message = HOLES[hole]
    for file in spoilt.workflows.iterdir():
        content = yaml.safe_load(file.read_text())
        if name in content["jobs"]:
            change(content["jobs"][name])
            file.write_text(yaml.safe_dump(content, sort_keys=False))
    stops(spoilt, message, first, at)


@pytest.mark.parametrize(
    ("old", "new", "job"),
    [
        ("timeout-minutes: 15", "continue-on-error: true", "check"),
        ("actions/attest@", "someone/action@", "sign"),
    ],
)
def test_what_it_does_not_know_stops_it(spoilt: Rehearsal, old: str, new: str, job: str) -> None:
    file = spoilt.workflows / "release.yml"
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))
    with pytest.raises(AssertionError, match=new.strip("@").split(":")[0]):
        spoilt.run(job, job)


# --- Strategy `each`: a wheel for every cell, in chunks ---------------------------------------------

# Two torches and two Pythons, as pip installs a wheel only beside the torch that it asks for.
EACH = {
    'default = "universal"': 'default = "each"',
    'versions = ["3.11", "3.12"]': 'versions = ["3.11", "3.13"]',
    '[torch."2.10"]\ncuda = ["cpu"]\npypi = { x86_64 = "cpu", aarch64 = "cpu" }': """[torch."2.12"]
cuda = ["cpu"]

[torch."2.15"]
cuda = ["cpu"]""",
    'run = [{ torch = "2.10", python = "3.11" }]': """run = [
  { torch = "2.12", python = "3.11" },
  { torch = "2.12", python = "3.13" },
  { torch = "2.15", python = "3.11" },
  { torch = "2.15", python = "3.13" },
]""",
}


@pytest.fixture(scope="module")
def each(tmp_path_factory: pytest.TempPathFactory) -> Rehearsal:
    """The workflow that `wheelyard init` writes, on the demo project with four cells, each with a wheel of its own."""
    folder = tmp_path_factory.mktemp("each")
    workflows = folder / "workflows"
    shutil.copytree(ROOT / ".github/workflows", workflows)
    written = re.sub(r"@wheelyard-v[\d.]+", "", files.workflow("$/.github/workflows"))
    of_this_tree = re.sub(r'wheelyard: "[\d.]+"', 'wheelyard: ""', written)
    (workflows / "release.yml").write_text(of_this_tree)
    origin = copy_of_demo(folder / "origin")
    matrix = origin / "ci/matrix.toml"
    text = matrix.read_text()
    for old, new in EACH.items():
        assert old in text
        text = text.replace(old, new)
    matrix.write_text(text)
    with (origin / ".gitignore").open("a") as ignored:
        ignored.write("/.venv\n")
    git(origin, "commit", "--all", "--message", "Make a wheel for each cell")
    git(origin, "tag", "v1.0")
    made = Rehearsal(origin, "v1.0", folder, {"GH_FOLDER": str(folder / "github")}, workflows)
    use_tools_of(ROOT, made)
    try:
        made.run()
    except Failed as failed:
        pytest.fail(str(failed))
    return made


def test_each_cell_has_its_own_wheel_and_job(each: Rehearsal) -> None:
    names = sorted(path.name for path in each.artifacts.glob("build-*/*.whl"))
    starts = [name.partition("-manylinux")[0] for name in names]
    assert starts == [
        f"demo_ext-1.0+cputorch{torch}-{tag}-{tag}"
        for torch in ("2.12", "2.15")
        for tag in ("cp311", "cp313")
    ]
    builds = [
        artifact for artifact in each.artifacts.iterdir() if artifact.name.startswith("build-")
    ]
    assert len(builds) == 4


def test_the_index_is_a_folder_for_any_web_server(each: Rehearsal) -> None:
    folder = each.artifacts / "index"
    pages = [file.read_text() for file in (folder / "simple").rglob("index.html")]
    for wheel in folder.glob("*.whl"):
        assert any(
            f"{wheel.name.replace('+', '%2B')}#sha256={sha256(wheel)}" in page for page in pages
        )
    assert "Not published yet" in (folder / "report.html").read_text()


def test_a_version_tag_puts_the_wheels_on_its_release_page(each: Rehearsal) -> None:
    there = {file.name: sha256(file) for file in (each.folder / "github").iterdir()}
    wheels = list(each.artifacts.glob("build-*/*.whl"))
    assert {wheel.name: sha256(wheel) for wheel in wheels}.items() <= there.items()
    assert {"SHA256SUMS", "report.html", "release.json", "demo_ext-1.0.tar.gz"} <= there.keys()
    assert list(each.printed)[-1] == "page"


def test_each_wheel_asks_for_its_torch(each: Rehearsal) -> None:
    for wheel in each.artifacts.glob("build-*/*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            (name,) = (n for n in archive.namelist() if n.endswith("/METADATA"))
            metadata = archive.read(name).decode()
        torch = wheel.name.partition("torch")[2].partition("-")[0]
        assert f"Requires-Dist: torch=={torch}.*\n" in metadata
        assert f"Version: {wheel.name.split('-')[1]}\n" in metadata

"""Tests that the workflows keep to the rules of publishing."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import rehearsal
import yaml
from repository import ROOT, TOOL
from wheelyard import new
from wheelyard.arguments import OTHERS
from wheelyard.init import files
from wheelyard.plan import github
from wheelyard.steps import ELSEWHERE, STEPS

PROGRAMS = Path(sys.executable).parent
# All that the token of a job may write; GitHub itself asks for id-token where something is signed or uploaded.
WRITES = {
    "docs.yml: publish": {"contents"},
    "locks.yml: propose": {"actions", "contents", "pull-requests"},
    "publish.yml: page": {"contents"},
    "release.yml: github": {"contents"},
    **{f"{file}: sign": {"attestations", "id-token"} for file in ("release.yml", "tools.yml")},
    **{f"{file}: {job}": {"id-token"} for file in ("release.yml", "tools.yml") for job in rehearsal.PUBLIC},
}  # fmt: skip
PLACES = {
    "*.actions.githubusercontent.com:443", "*.blob.core.windows.net:443", "*.sigstore.dev:443", "api.github.com:443",
    "azure.archive.ubuntu.com:80", "files.pythonhosted.org:443", "github.com:443", "pypi.org:443", "test.pypi.org:443",
    "tuf-repo-cdn.sigstore.dev:443", "tuf-repo.github.com:443", "upload.pypi.org:443",
}  # fmt: skip
PLAIN = r"[^&|;<>$()]*"  # words without any meaning to a shell
CALL = rf"(sudo )?\.venv/bin/wheelyard (?P<step>[a-z-]+){PLAIN}(\"\$[A-Z0-9_]+\"{PLAIN})*"
COMMAND = re.compile(rf"{CALL}|make [a-z -]+")
DIGESTS = 'echo "digests=$(.venv/bin/wheelyard digests --place github)" >>"$GITHUB_OUTPUT"'
WHOLE = {
    DIGESTS,
    'make --silent tool-digests >>"$GITHUB_OUTPUT"',
    'echo "jobs=$(.venv/bin/wheelyard plan --place github --github)" >>"$GITHUB_OUTPUT"',
}


def problems() -> Iterator[str]:
    """Yields everything that is wrong with the workflows, the quickest checks first."""
    for file in sorted((ROOT / ".github/workflows").iterdir()):
        content = yaml.safe_load(file.read_text())
        if content["permissions"] != {}:
            yield f"{file.name}: permissions at the top"
        if re.search(r"secrets\.|PASSWORD|API_TOKEN", file.read_text()):
            yield f"{file.name}: a long-lived token"
        for job, facts in content["jobs"].items():
            where = f"{file.name}: {job}"
            writes = {name for name, access in facts["permissions"].items() if access != "read"}
            if writes != WRITES.get(where, set()):
                yield f"{where}: may write {writes}"
            for step in facts.get("steps", []):
                yield from step_problems(where, step)
            yield from job_problems(where, facts)
    for file in sorted((ROOT / ".github/actions").glob("*/action.yml")):
        for step in yaml.safe_load(file.read_text())["runs"]["steps"]:
            yield from install_problems(file.parent.name, step["run"])
    yield from zizmor(ROOT)
    yield from schema(ROOT)


def step_problems(where: str, step: dict[str, Any]) -> Iterator[str]:
    uses, run = step.get("uses"), step.get("run")
    yield from install_problems(where, run or "")
    if uses and "cache" in uses + json.dumps(step.get("with", {})):
        keys = [f"{step['with'].get('key')}", *step["with"].get("restore-keys", "").splitlines()]
        of_a_branch = all(
            re.search(r"-(\$\{\{ github\.ref \}\}|refs/heads/main)-", k) for k in keys
        )
        if where != "ci.yml: test" or not of_a_branch:
            yield f"{where}: a cache"
    if run:
        call = COMMAND.fullmatch(run)
        known = {*STEPS, *ELSEWHERE, *OTHERS, "join", "tag", "doctor", None}
        if run not in WHOLE and (not call or call["step"] not in known):
            yield f"{where}: `{run}` is more than one call of the pipeline or make"


def install_problems(where: str, run: str) -> Iterator[str]:
    """Checks that everything installed has a hash in a lock, or is a downloaded file whose provenance was verified."""
    for line in run.splitlines():
        is_verified = "--no-index" in line and "gh attestation verify" in run
        if "pip install" in line and "--require-hashes" not in line and not is_verified:
            yield f"{where}: `{line}` installs without hashes"


def job_problems(where: str, job: dict[str, Any]) -> Iterator[str]:
    """Checks that a job gets its values through `needs`, a token only in one step, and few packages if it can sign or
    upload."""
    given, lines = job.get("env", {}), [step.get("run", "") for step in job.get("steps", [])]
    if "github.token" in json.dumps(given):
        yield f"{where}: a token for the whole job"
    for line in (line for line in lines if "wheelyard join" in line):
        words = re.findall(r'--(?:all-)?made \w+="\$(\w+)"', line)
        if not words:
            yield f"{where}: takes over whatever is there"
        for word in words:
            if not re.fullmatch(r"\$\{\{ (needs\.\w+\.outputs|inputs)\.\w+ \}\}", given[word]):
                yield f"{where}: {word} does not come from an earlier job"
    if job.get("environment") == "pypi":
        checks = {'.venv/bin/wheelyard tag --check --on "$BRANCH"', "make check-tools-tag"}
        is_checked = checks.intersection(lines) and '"BRANCH": "origin/' in json.dumps(job)
        is_fresh = any("ref" in step.get("with", {}) for step in job["steps"])
        if not (is_checked and is_fresh):
            yield f"{where}: a tag that was moved or deleted is released"
    if job.get("environment") and "GH_TOKEN" not in json.dumps(job["steps"]):
        yield f"{where}: uploads what it cannot verify"
    can_sign = job.get("permissions", {}).get("id-token") == "write"
    yield from network_problems(where, job) if can_sign else ()
    if can_sign and not {"make tools-sign", "make tools-publish"}.intersection(lines):
        yield f"{where}: more tools than it needs beside an identity"


def network_problems(where: str, job: dict[str, Any]) -> Iterator[str]:
    """Checks that beside an identity only known places can be reached. GitHub gives artifacts no narrower name than
    that."""
    limits = [s["with"] for s in job.get("steps", []) if "harden-runner" in s.get("uses", "")]
    if not limits or limits[0]["egress-policy"] != "block":
        yield f"{where}: an identity, and the whole network"
        return
    for place in limits[0]["allowed-endpoints"].split():
        if place not in PLACES:
            yield f"{where}: may reach {place}"


def zizmor(folder: Path) -> list[str]:
    command = [PROGRAMS / "zizmor", "--offline", "--pedantic", "--format=json", folder / ".github"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout, done.stderr
    return [f"zizmor: {finding['ident']}" for finding in json.loads(done.stdout)]


def schema(folder: Path) -> Iterator[str]:
    checks = {
        "vendor.github-workflows": sorted((folder / ".github/workflows").iterdir()),
        "vendor.dependabot": [folder / ".github/dependabot.yml"],
        "vendor.github-issue-config": [folder / ".github/ISSUE_TEMPLATE/config.yml"],
        "vendor.github-issue-forms": [folder / ".github/ISSUE_TEMPLATE/bug.yml"],
    }
    for name, checked in checks.items():
        command = [PROGRAMS / "check-jsonschema", "--builtin-schema", name, *checked]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            yield f"schema: {done.stdout}"


def test_no_problem() -> None:
    assert list(problems()) == []


def test_zizmor_finds_nothing_in_what_other_projects_get(tmp_path: Path) -> None:
    """Projects get workflows from `wheelyard new`, which install nothing without a hash beside an identity, and from
    `wheelyard init`."""
    for name, content in new.rendered("my-ext", "").items():
        if name.startswith(".github"):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_bytes(content)
            for job in yaml.safe_load(content)["jobs"].values():
                for step in job["steps"] if "write" in job["permissions"].values() else []:
                    assert list(install_problems(name, step.get("run", ""))) == []
    uses = "someone/somewhere/.github/workflows"
    written = tmp_path / ".github/workflows/wheels.yml"
    written.write_text(files.workflow(uses, "0" * 40))
    assert zizmor(tmp_path) == []
    written.write_text(files.workflow(uses))
    assert set(zizmor(tmp_path)) == {"zizmor: unpinned-uses"}, "a tag can be moved"


def test_every_artifact_says_which_jobs_it_is_for() -> None:
    """An artifact that one job uploads and another takes over has an entry in wheelyard's list or, for verify's, in the
    plan."""
    uploaded = {
        step["with"]["name"].partition("${{")[0]
        for job in rehearsal.jobs(ROOT / ".github/workflows").values()
        for step in job["steps"]
        if "upload-artifact" in step.get("uses", "")
    }
    assert uploaded - {"index", "verify-"} == {name.rstrip("*") for name in github.ARTIFACTS}


@pytest.mark.parametrize("lock", ["sign", "publish"])
def test_a_job_with_an_identity_installs_few_packages(lock: str) -> None:
    text = (ROOT / f"ci/{lock}.lock").read_text()
    pinned = re.findall(r"^([\w-]+)==(\S+)", text, re.MULTILINE)
    assert 0 < len(pinned) <= 31
    tested = (TOOL / "tests/tests.lock").read_text()
    for name, version in pinned:
        assert f"{name}=={version} " in tested, "the same versions as in the tests"


# What each job of release.yml with that lock does: it plans the whole release, for both indexes, then runs its step.
RUN = """
import re, runpy, sys
from importlib.metadata import packages_distributions
from pathlib import Path
from packaging.utils import canonicalize_name
lock, base, step, program, word = sys.argv[1:]
pinned = re.findall(r"^([\\w-]+)==", Path(f"ci/{lock}.lock").read_text(), re.MULTILINE)
named = {canonicalize_name(name) for name in ("wheelyard", *pinned)}
for module, owners in packages_distributions().items():
    if named.isdisjoint(map(canonicalize_name, owners)):
        sys.modules[module] = None
from wheelyard import cli, steps
from wheelyard.plan import plan as planning
from wheelyard.plan.plan import INDEXES, Options
for index in INDEXES:
    plan = planning.load(Options(base=base, place="github", index=index), Path.cwd())
    assert steps.planned(plan).jobs
steps.module(step)
cli._all_indexes(plan)
sys.argv = [program, word]
runpy.run_module(program, run_name="__main__", alter_sys=True)
"""
JOBS = {
    "sign": ("attest", "pypi_attestations", "--help"),
    "publish": ("publish", "twine", "--version"),
}


@pytest.mark.parametrize("base", ["debian", "pypa", "auto"])
@pytest.mark.parametrize("lock", JOBS)
def test_a_job_needs_no_more_than_its_lock(lock: str, base: str) -> None:
    command = [sys.executable, "-c", RUN, lock, base, *JOBS[lock]]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

"""Runs the jobs of a release workflow here: their `run:` lines, in clean clones.

A job sees what a runner would give it: a clone of the tag, the outputs of the jobs it needs, the artifacts of those
that must be over before it starts, and nothing else. Anything in a workflow that the rehearsal does not know stops it.
It replaces only what a runner has and this machine lacks: runners of another architecture, a GPU (by evidence) and
GitHub's own `gh`.
"""

import functools
import json
import os
import platform
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml
from repository import ROOT
from wheelyard.core.digest import sha256
from wheelyard.init import files
from wheelyard.tools import index
from wheelyard.tools.index import Index

STAND_INS = Path(__file__).with_name("stand_ins")
# Actions that the rehearsal performs itself, or that leave no file, such as the runner's firewall. Of signing it
# records which files are signed.
ACTIONS = {
    "actions/checkout", "actions/upload-artifact", "actions/download-artifact",
    "actions/attest", "step-security/harden-runner",
}  # fmt: skip
JOB_KEYS = {
    "name", "needs", "runs-on", "timeout-minutes", "permissions", "environment", "strategy", "env",
    "outputs", "steps", "calls", "file", "as_written", "if",
}  # fmt: skip
NOT_SIGNED = "build/release/attestations/*"  # signing needs GitHub's identity
REPOSITORY = "owner/repository"
PUBLIC = ("testpypi", "pypi")  # the indexes, and the jobs that publish to them
# The line that the action for wheelyard runs in its own repository; elsewhere with_our_tools stands in for it.
WHEELYARD, WHEELYARDS_LINE = "$/.github/actions/wheelyard", "make tools wheelscope"
# Lines that set a job up: the same line on the same commit makes the same files.
SET_UP = re.compile(r"make (tools|tool-wheels)[a-z -]*")
STEP_KEYS = {"name", "id", "if", "uses", "with", "run", "env"}
# Variables of a developer's shell that a runner does not have.
NOT_ON_A_RUNNER = ("RELEASE_FOLDER", "VIRTUAL_ENV", "PYTHON", "MAKE", "MFLAGS", "PYTEST", "GITHUB_")

Job = dict[str, Any]


@dataclass
class Failed(Exception):
    """A job that failed."""

    job: str
    output: str

    def __str__(self) -> str:
        return f"{self.job}: {self.output}"


@dataclass
class Rehearsal:
    """One workflow run: its clones, its artifacts, what each job printed and how long it took."""

    origin: Path
    tag: str  # or a branch, if the run was started by hand
    folder: Path
    environment: dict[str, str]  # added to the machine's own
    workflows: Path = ROOT / ".github/workflows"
    file: str = "release.yml"
    ref_type: str = "tag"
    outputs: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)  # by file and job
    signed: dict[str, str] = field(default_factory=dict)  # the sha256 of each file with provenance
    uploaders: dict[str, str] = field(default_factory=dict)  # the job of each artifact
    printed: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)  # of each job and `make` line

    def __post_init__(self) -> None:
        self.artifacts, self.made = self.folder / "artifacts", self.folder / "made"
        self.signatures = self.folder / "signed"

    @functools.cached_property
    def commit(self) -> str:
        """The commit that the run was started for, even if the tag moves later."""
        head = ["git", "-C", self.origin, "rev-parse", f"{self.tag}^{{commit}}"]
        return subprocess.run(head, check=True, capture_output=True, text=True).stdout.strip()

    @property
    def jobs(self) -> dict[str, Job]:
        return jobs(self.workflows, self.file)

    def run(self, first: str = "") -> None:
        """Runs the jobs from `first` on, each after those that it needs. A job whose `if` is false is skipped,
        with the jobs that need it."""
        names = list(self.jobs)
        start = names.index(first) if first else 0
        known, skipped = {"github.ref_type": self.ref_type}, set[str]()
        for name in names[start:]:
            needs = as_list(self.jobs[name].get("needs", []))
            if skipped.isdisjoint(needs) and is_wanted(self.jobs[name].get("if", ""), known):
                self.run_job(name)
            else:
                skipped.add(name)

    def run_job(self, name: str) -> None:
        job = self.jobs[name]
        for artifact in [a for a, uploader in self.uploaders.items() if uploader == name]:
            shutil.rmtree(self.artifacts / artifact)  # left by an earlier attempt
            del self.uploaders[artifact]
        self.printed[name] = ""
        self.outputs[job["file"], name] = {}
        for values in self.instances(name, job):
            title = self.filled(name, job["name"], values)
            began = time.monotonic()
            known = sum(self.seconds.values())
            self.run_instance(name, job, values)
            set_up = sum(self.seconds.values()) - known
            self.seconds[title] = time.monotonic() - began - set_up

    def instances(self, name: str, job: Job) -> Iterator[dict[str, str]]:
        """Yields the values of the `${{ }}` expressions, once, or for each entry of the matrix that can run here."""
        head = ["git", "-C", self.origin, "branch", "--show-current"]
        branch = subprocess.run(head, check=True, capture_output=True, text=True).stdout.strip()
        known = {"github.token": "a-token-for-the-stand-in", "github.ref_type": self.ref_type}
        known["github.event.repository.default_branch"] = branch
        contexts = [known | self.told(job)]
        for call in job.get("calls", []):  # the jobs that call this one's workflow, outermost first
            contexts = [
                context
                | {f"inputs.{k}": self.filled(name, v, context) for k, v in call["with"].items()}
                for outer in contexts
                for context in self.matrix(name, call, outer | self.told(call))
            ]
        for context in contexts:
            for entry in self.matrix(name, job, context):
                foreign = entry.get("matrix.arch", platform.machine()) != platform.machine()
                if foreign and (name == "smoke" or "-python" in entry.get("matrix.task", "")):
                    continue  # runs the wheel, on a runner of that architecture
                yield entry

    def told(self, job: Job) -> dict[str, str]:
        """Returns the outputs of the jobs that a job needs, as its workflow names them."""
        return {
            f"needs.{need}.outputs.{key}": value
            for need in job["as_written"]
            for key, value in self.outputs_of(job["file"], need).items()
        }

    def outputs_of(self, file: str, name: str) -> dict[str, str]:
        """Returns the outputs of a job, or of the workflow that it calls, without those that were never set."""
        job = load(self.workflows, file)["jobs"].get(name)
        if job is None or "uses" not in job:
            return self.outputs.get((file, name), {})
        called = Path(job["uses"]).name
        found = {}
        for key, output in (
            load(self.workflows, called)["on"]["workflow_call"].get("outputs", {}).items()
        ):
            inner = re.fullmatch(r"\$\{\{ jobs\.(\w+)\.outputs\.(\w+) \}\}", output["value"])
            assert inner, output
            found[key] = self.outputs_of(called, inner[1]).get(inner[2], "")
        return found

    def matrix(self, name: str, job: Job, known: dict[str, str]) -> Iterator[dict[str, str]]:
        """Yields the values of the `${{ }}` expressions in each job of a matrix; once if there is none."""
        if "strategy" not in job:
            yield known
            return
        matrix = job["strategy"]["matrix"]
        if isinstance(matrix, str):
            found = re.fullmatch(r"\$\{\{ fromJSON\((.*?)\)(?:\.(\w+))? \}\}", matrix)
            assert found, job["strategy"]
            if found[1] not in known:
                raise Failed(name, f"{found[1]} is not known: does the job need that job?")
            told = json.loads(known[found[1]])
            matrix = told[found[2]] if found[2] else told
        entries = matrix["include"]
        assert 0 < len(entries) <= 256, f"{name} has {len(entries)} jobs in one matrix"
        for number, entry in enumerate(entries):
            yield {**known, "strategy.job-index": str(number)} | {
                f"matrix.{key}": str(value) for key, value in entry.items()
            }

    def filled(self, name: str, text: str, values: dict[str, str]) -> str:
        """Returns a text of the workflow with its expressions resolved."""

        def value(expression: re.Match[str]) -> str:
            wanted = expression[1]
            if choice := re.fullmatch(r"(\S+) == '(\w+)' && (\S+) \|\| ''", wanted):
                if values[choice[1]] != choice[2]:
                    return ""
                wanted = choice[3]
            if wanted not in values and wanted.rpartition(".")[0] in values:
                return ""  # the step ran, and set other outputs
            if wanted not in values:
                raise Failed(name, f"{wanted} is not known: does an earlier job give it?")
            return values[wanted]

        return re.sub(r"\$\{\{ (.*?) \}\}", value, text)

    def run_instance(self, name: str, job: Job, values: dict[str, str]) -> None:
        assert job.keys() <= JOB_KEYS, f"{name}: {job.keys() - JOB_KEYS}"
        whole = any(step.get("with", {}).get("fetch-depth") == 0 for step in job["steps"])
        clone = self.clone(whole=whole)
        given = {key: self.filled(name, text, values) for key, text in job.get("env", {}).items()}
        over = time.monotonic() + 60 * job["timeout-minutes"]
        for step in job["steps"]:
            assert step.keys() <= STEP_KEYS, f"{name}: {step.keys() - STEP_KEYS}"
            if not is_wanted(step.get("if", ""), values):
                continue
            if "run" in step or step["uses"] == WHEELYARD:
                told = {k: self.filled(name, v, values) for k, v in step.get("env", {}).items()}
                left = over - time.monotonic()
                line = step.get("run", WHEELYARDS_LINE)
                written = self.run_line(name, clone, line, given | told, left)
                told_by = f"steps.{step.get('id')}.outputs"
                values |= {told_by: "", **{f"{told_by}.{k}": v for k, v in written.items()}}
                continue
            action, options = step["uses"].split("@")[0], step.get("with", {})
            assert action in ACTIONS, f"{name} uses {action}"
            if action == "actions/upload-artifact":
                artifact, paths = (self.filled(name, options[k], values) for k in ("name", "path"))
                self.upload(name, clone, artifact, paths)
            elif action == "actions/download-artifact":
                self.download(name, clone, options)
            elif action == "actions/attest":
                files = [
                    f for pattern in options["subject-path"].split() for f in clone.glob(pattern)
                ]
                self.signed |= {file.name: sha256(file) for file in files}
                with self.signatures.open("a") as noted:
                    noted.writelines(f"{sha256(file)} {self.signer(job)}\n" for file in files)
        for key, text in job.get("outputs", {}).items():
            # Of a matrix's jobs, the last that sets it counts.
            if value := self.filled(name, text, values):
                self.outputs[job["file"], name][key] = value
        shutil.rmtree(clone)

    def clone(self, *, whole: bool = False) -> Path:
        """Makes a clean clone of the tag, with its history or without, always in the same place."""
        clone = self.folder / "clone"
        shutil.rmtree(clone, ignore_errors=True)
        command = ["git", "-c", "advice.detachedHead=false", "clone", "--quiet"]
        command += [] if whole else ["--depth=1"]
        subprocess.run([*command, "--branch", self.tag, f"file://{self.origin}", clone], check=True)
        return clone

    def run_line(
        self, name: str, clone: Path, line: str, given: dict[str, str], seconds: float
    ) -> dict[str, str]:
        """Runs one line as a runner does, a set-up only once for all jobs; returns what it wrote to GITHUB_OUTPUT."""
        made, is_set_up = self.made / line.replace(" ", "-"), SET_UP.fullmatch(line)
        if is_set_up and made.exists():
            subprocess.run(["cp", "--archive", "--link", f"{made}/.", clone], check=True)
            return {}
        began = time.monotonic()
        output = self.folder / "github-output"
        output.write_text("")
        words = line.removeprefix("sudo ") if os.geteuid() == 0 else line
        told = self.shell_environment(given, output)
        if name == "gpu":
            told["PYTHONPATH"] = str(STAND_INS / "x86_64")
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", words],
            cwd=clone, env=told, timeout=seconds,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        self.printed[name] += f"$ {line}\n{done.stdout}"
        if done.returncode:
            raise Failed(name, f"{line}\n{done.stdout}")
        if is_set_up:
            self.seconds[line] = time.monotonic() - began
            for part in (".venv", "build"):
                if (clone / part).exists():
                    made.mkdir(parents=True, exist_ok=True)
                    command = ["cp", "--archive", "--link", clone / part, made]
                    subprocess.run(command, check=True)
        return dict(text.split("=", 1) for text in output.read_text().splitlines())

    def shell_environment(self, given: dict[str, str], output: Path) -> dict[str, str]:
        """Returns this machine's environment without this checkout's parts, and with the stand-ins first on PATH."""
        kept = {n: v for n, v in os.environ.items() if not n.startswith(NOT_ON_A_RUNNER)}
        places = [p for p in kept["PATH"].split(os.pathsep) if not Path(p).is_relative_to(ROOT)]
        kept["PATH"] = os.pathsep.join([str(STAND_INS), *places])
        if shutil.which("nvidia-smi") is None:
            kept["TORCH_PYTHON"] = str(STAND_INS / "gpu-python")
        there = {"WHEELYARD_MACHINES": platform.machine(), "GITHUB_OUTPUT": str(output)}
        there |= self.runner_variables(self.file) | {"GH_SIGNED": str(self.signatures)}
        return {**kept, **self.environment, **given, **there}

    def runner_variables(self, file: str) -> dict[str, str]:
        ref = f"refs/{'tags' if self.ref_type == 'tag' else 'heads'}/{self.tag}"
        return {
            "GITHUB_REF_NAME": self.tag,
            "GITHUB_REPOSITORY": REPOSITORY,
            "GITHUB_REF": ref,
            "GITHUB_SHA": self.commit,
            "GITHUB_WORKFLOW_REF": f"{REPOSITORY}/.github/workflows/{file}@{ref}",
        }

    def signer(self, job: Job) -> str:
        """Returns the arguments with which `gh attestation verify` must ask for a file that this job signs."""
        told = self.runner_variables(job["file"])
        return (
            f"--repo {REPOSITORY} --signer-workflow {REPOSITORY}/.github/workflows/{job['file']} "
            f"--source-ref {told['GITHUB_REF']} --source-digest {told['GITHUB_SHA']} --deny-self-hosted-runners"
        )

    def upload(self, name: str, clone: Path, artifact: str, paths: str) -> None:
        target = self.artifacts / artifact
        shutil.rmtree(target, ignore_errors=True)
        folders = [pattern.partition("*")[0].rpartition("/")[0] for pattern in paths.split()]
        for pattern in paths.split():
            inside = "**/*" if pattern.endswith("/") else ""
            files = [file for file in clone.glob(pattern + inside) if file.is_file()]
            if not files and pattern != NOT_SIGNED:
                raise Failed(name, f"nothing to upload as {artifact}: there is no {pattern}")
            for file in files:
                place = target / file.relative_to(clone / os.path.commonpath(folders))
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, place)
        self.uploaders[artifact] = name

    def download(self, name: str, clone: Path, options: dict[str, Any]) -> None:
        """Copies artifacts into the clone. Every name, and every alternative of a pattern, must come from an earlier
        job."""
        before = needed(self.jobs, name)
        made = (a for a, uploader in self.uploaders.items() if uploader in before)
        there = sorted(a for a in made if (self.artifacts / a).is_dir())
        taken: list[str] = []
        for wanted in (options.get("name") or options["pattern"]).strip("{}").split(","):
            found = [artifact for artifact in there if fnmatch(artifact, wanted)]
            if not found:
                raise Failed(name, f"no job before this one has uploaded {wanted}")
            taken += found
        for artifact in taken:  # the action makes no folder for a single artifact
            is_merged = len(taken) == 1 or options.get("merge-multiple")
            place = clone / options["path"] / ("" if is_merged else artifact)
            shutil.copytree(self.artifacts / artifact, place, symlinks=True, dirs_exist_ok=True)


def is_wanted(condition: str, values: dict[str, str]) -> bool:
    """Whether a step's or job's `if` holds; it can only compare a value with a text."""
    if not condition:
        return True
    found = re.fullmatch(r"([\w.]+) (==|!=) '(\w*)'", condition)
    assert found, condition
    return (values[found[1]] == found[3]) == (found[2] == "==")


def jobs(workflows: Path, file: str = "release.yml", calls: tuple[Job, ...] = ()) -> dict[str, Job]:
    """Returns the jobs of a workflow, with those of the workflows that it calls in place of the calling job."""
    found: dict[str, Job] = {}
    called: dict[str, list[str]] = {}
    for name, written in load(workflows, file)["jobs"].items():
        as_written = as_list(written.get("needs", []))
        before = [n for need in as_written for n in called.get(need, [need])]
        job = {**written, "file": file, "as_written": as_written}
        if "uses" not in job:
            found[name] = {**job, "needs": before} | ({"calls": list(calls)} if calls else {})
            continue
        chain = (*calls, job) if "with" in job else calls
        inner = jobs(workflows, Path(job["uses"]).name, chain)
        assert not found.keys() & inner.keys(), "two jobs of one name"
        called[name] = list(inner)
        found |= {n: {**j, "needs": [*j["needs"], *before]} for n, j in inner.items()}
    return found


def load(workflows: Path, file: str) -> Job:
    """Returns a workflow, after undoing that YAML reads its key `on` as true."""
    content = yaml.safe_load((workflows / file).read_text())
    return {"on" if key is True else key: value for key, value in content.items()}


def as_list(needs: str | list[str]) -> list[str]:
    return [needs] if isinstance(needs, str) else needs


def needed(all_jobs: dict[str, Job], name: str) -> set[str]:
    """Returns the jobs that must be over before this one starts."""
    direct = set(as_list(all_jobs[name].get("needs", [])))
    return direct.union(*(needed(all_jobs, job) for job in direct))


def with_our_tools(rehearsal: Rehearsal) -> Rehearsal:
    """Makes the `make` lines find this checkout's tools, for a project without our Makefile."""
    for line in ("make tools", WHEELYARDS_LINE, "make tools-sign", "make tools-publish"):
        made = rehearsal.made / line.replace(" ", "-")
        made.mkdir(parents=True)
        (made / ".venv").symlink_to(ROOT / ".venv")
    return rehearsal


def stand_ins(folder: Path, indexes: list[Index]) -> dict[str, str]:
    """Returns variables that make the pipeline use these indexes in place of the public ones, and a folder as
    GitHub."""
    return {
        "GH_FOLDER": str(folder / "github"),
        "TWINE_USERNAME": index.USER,
        "TWINE_PASSWORD": indexes[0].password or "",
        **{f"INDEX_{n.upper()}": i.upload for n, i in zip(PUBLIC, indexes, strict=True)},
    }


def run_whole(made: Rehearsal) -> Rehearsal:
    """Runs every job; one that fails fails the test."""
    try:
        made.run()
    except Failed as failed:
        pytest.fail(str(failed))
    return made


def check_published(run: Rehearsal, indexes: list[Index], project: str) -> None:
    """Checks that every job ran, both indexes have the files, the release page has all of them, and a second run sends
    nothing."""
    assert list(run.printed) == [name for name in run.jobs if name != "dry-run"]  # no tag runs that
    made = [*run.artifacts.glob("build-*/*.whl"), *run.artifacts.glob("sdist/*.tar.gz")]
    assert len(made) == 3
    for where in indexes:
        assert where.files(project) == {file.name: sha256(file) for file in made}
    page = run.folder / "github"
    names = {file.name for file in page.iterdir()}
    assert {file.name for file in made} <= names
    assert {"SHA256SUMS", "report.html", "release.json", "gpu-x86_64.json"} <= names
    assert len([name for name in names if name.endswith(".cyclonedx.json")]) == 2
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=page, check=True)
    run.printed.clear()
    run.run("testpypi")
    for job in PUBLIC:
        assert "0 files uploaded, 3 already there" in run.printed[job]
    assert "is public already, with the same checksums" in run.printed["github"]


def workflows_of_init(folder: Path) -> Path:
    """Returns the workflows of this tree, with release.yml replaced by the one that `wheelyard init` writes, which
    calls them."""
    workflows = folder / "workflows"
    shutil.copytree(ROOT / ".github/workflows", workflows)
    written = re.sub(r"@wheelyard-v[\d.]+", "", files.workflow("$/.github/workflows"))
    (workflows / "release.yml").write_text(written)
    return workflows

"""Runs the jobs of the workflows here: their `run:` lines, in clean clones, artifacts passed on.

What a runner has and this machine has not is replaced, and only that: `make` (the tools of this
checkout are used), runners of another architecture, a GPU, and GitHub's own `gh`.
"""

import json
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from ci.project import ROOT

WORKFLOWS = ROOT / ".github/workflows"
GH = """#!/bin/sh
# Stands in for GitHub's `gh release`: keeps the files of a release in $GH_FOLDER.
set -eu
case "$2" in
  view) [ -d "$GH_FOLDER" ] || exit 1
    printf '{"assets": ['; first=
    for file in "$GH_FOLDER"/*; do [ -e "$file" ] && printf '%s{"name": "%s"}' "$first" "${file##*/}"; first=,; done
    printf ']}' ;;
  create) mkdir "$GH_FOLDER" ;;
  upload) shift 3; for file; do [ ! -e "$GH_FOLDER/${file##*/}" ]; cp "$file" "$GH_FOLDER"; done ;;
esac
"""  # noqa: E501


@dataclass
class Failed(Exception):
    """A job that went red."""

    job: str
    output: str


@dataclass
class Rehearsal:
    """One workflow run: its clones, its artifacts, what each job printed."""

    origin: Path
    tag: str
    folder: Path
    environment: dict[str, str]
    jobs_json: str = ""
    printed: dict[str, str] = field(default_factory=dict)

    @property
    def artifacts(self) -> Path:
        return self.folder / "artifacts"

    def run(self, first: str = "", last: str = "") -> None:
        """Runs the jobs from `first` to `last`, in the order of their needs."""
        names = list(jobs())
        chosen = names[names.index(first) if first else 0 :]
        for name in chosen:
            for job in instances(name, jobs()[name], self.jobs_json):
                self.run_job(name, job)
            if name == last:
                return

    def run_job(self, name: str, job: dict[str, Any]) -> None:
        clone = self.clone()
        for step in job["steps"]:
            uses, options = step.get("uses", ""), step.get("with", {})
            if "upload-artifact" in uses:
                self.upload(clone, options)
            elif "download-artifact" in uses:
                self.download(clone, options)
            elif "run" in step:
                self.run_step(name, clone, step["run"], job.get("env", {}))

    def clone(self) -> Path:
        clone = self.folder / "clone"
        shutil.rmtree(clone, ignore_errors=True)
        command = ["git", "-c", "advice.detachedHead=false", "clone", "--quiet"]
        subprocess.run([*command, "--branch", self.tag, self.origin, clone], check=True)
        (clone / ".venv").symlink_to(Path(sys.prefix))
        (clone / "build/bin").mkdir(parents=True)
        shutil.copy(ROOT / "build/bin/wheelscope", clone / "build/bin")
        return clone

    def run_step(self, name: str, clone: Path, line: str, env: dict[str, str]) -> None:
        if line.startswith("make "):
            makefile = (ROOT / "Makefile").read_text()
            assert all(f"\n{target}:" in makefile for target in line.split()[1:]), line
            return
        if " -m ci gpu" in line and shutil.which("nvidia-smi") is None:
            return
        output = self.folder / "github-output"
        output.write_text("")
        given = {**self.environment, **env, "GITHUB_OUTPUT": str(output)}
        done = subprocess.run(
            ["bash", "-e", "-c", line.removeprefix("sudo ")], cwd=clone, env=given,
            capture_output=True, text=True,
        )  # fmt: skip
        self.printed[name] = self.printed.get(name, "") + done.stdout + done.stderr
        if done.returncode:
            raise Failed(name, done.stdout + done.stderr)
        if text := output.read_text():
            self.jobs_json = text.removeprefix("jobs=")

    def upload(self, clone: Path, options: dict[str, Any]) -> None:
        target = self.artifacts / options["name"]
        shutil.rmtree(target, ignore_errors=True)
        files = [file for line in options["path"].split() for file in clone.glob(line)]
        assert files, f"nothing to upload as {options['name']}"
        for file in files:
            place = target / file.relative_to(clone / "wheelhouse")
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, place)

    def download(self, clone: Path, options: dict[str, Any]) -> None:
        place = clone / options["path"]
        if name := options.get("name"):
            shutil.copytree(self.artifacts / name, place, dirs_exist_ok=True)
            return
        for pattern in options["pattern"].strip("{}").split(","):
            for artifact in self.artifacts.glob(pattern):
                shutil.copytree(artifact, place / artifact.name)


def jobs() -> dict[str, dict[str, Any]]:
    """The jobs of release.yml, with those of wheels.yml in the place of the job that calls it."""
    found: dict[str, dict[str, Any]] = {}
    for name, job in yaml.safe_load((WORKFLOWS / "release.yml").read_text())["jobs"].items():
        if "uses" in job:
            called = WORKFLOWS / Path(job["uses"]).name
            found |= yaml.safe_load(called.read_text())["jobs"]
        else:
            found[name] = job
    return found


def instances(name: str, job: dict[str, Any], plan: str) -> Iterator[dict[str, Any]]:
    """The job once, or once for each entry of its matrix that this machine can do."""
    matrix = job.get("strategy", {}).get("matrix")
    if matrix is None:
        yield job
        return
    key = re.search(r"\.(\w+) }}$", matrix)
    assert key, matrix
    for number, entry in enumerate(json.loads(plan)[key[1]]["include"]):
        foreign = entry["arch"] != platform.machine()
        if name == "verify" and foreign:
            continue  # needs a runner of that architecture
        values = {f"matrix.{k}": v for k, v in entry.items()} | {"strategy.job-index": number}
        text = json.dumps(job)
        for expression, value in values.items():
            text = text.replace("${{ " + expression + " }}", str(value))
        yield json.loads(text)

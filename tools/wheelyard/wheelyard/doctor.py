"""Checks for `wheelyard doctor --github` that the repository's settings on GitHub are ready for a tag.

It reads GitHub's REST API with the token in GH_TOKEN or GITHUB_TOKEN, and changes nothing. Settings that the token may
not read are called unknown; PyPI never tells who a project's trusted publishers are.
"""

import json
import os
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from wheelyard.core import git
from wheelyard.plan.plan import Plan
from wheelyard.problem import Problem

MISSING = "missing"
ENVIRONMENT = re.compile(r"^ +environment: *['\"]?([\w.-]+)", re.MULTILINE)
APPROVED = "pypi"  # the environment that requires an approval
ANSWER_SECONDS = 30
TYPE = "GH_TOKEN=$(gh auth token) wheelyard doctor --github"


@dataclass(frozen=True)
class Finding:
    level: str
    what: str
    do: str = ""  # what to do about it

    def __str__(self) -> str:
        return f"{self.level:8} {self.what}" + (f"\n         -> {self.do}" if self.do else "")


ok, missing = partial(Finding, "ok"), partial(Finding, MISSING)
advice, unknown = partial(Finding, "advice"), partial(Finding, "unknown")


@dataclass(frozen=True)
class Repository:
    name: str  # owner/name
    token: str

    def ask(self, path: str = "") -> Any:
        """Returns GitHub's answer, or None if this token may not see it or it does not exist: GitHub does not tell
        which."""
        api = os.environ.get("GITHUB_API_URL", "https://api.github.com")
        headers = {
            "Accept": "application/vnd.github+json",
            "Authorization": f"Bearer {self.token}",
            "X-GitHub-Api-Version": "2022-11-28",
        }
        request = urllib.request.Request(f"{api}/repos/{self.name}{path}", headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code == 401:
                raise Problem(f"GitHub refuses the token (401); use a new one: {TYPE}") from None
            if error.code == 429 or error.headers.get("x-ratelimit-remaining") == "0":
                raise Problem("GitHub's rate limit is used up; try again in an hour") from None
            if error.code in (403, 404):
                return None
            raise Problem(
                f"GitHub answers {error.code} ({error.reason}); try again later"
            ) from None
        except (OSError, ValueError) as error:
            raise Problem(f"GitHub does not answer ({error}); is there a network?") from None


def repository(root: Path) -> str:
    """Returns OWNER/NAME of the project on GitHub; empty if its remote `origin` is not there."""
    said = git.ask(root, "remote", "get-url", "origin") or ""
    found = re.search(r"github\.com[:/]+([\w.-]+/[\w.-]+?)(\.git)?/?$", said)
    return os.environ.get("GITHUB_REPOSITORY") or (found[1] if found else "")


def look(plan: Plan) -> list[Finding]:
    """Returns all findings, in the order in which a release needs them."""
    name, token = repository(plan.project.root), _token()
    if not name:
        raise Problem(
            "the remote `origin` is not a repository on GitHub; git remote add origin URL, then push"
        )
    if not token:
        raise Problem(
            "there is no token in GH_TOKEN or GITHUB_TOKEN, so GitHub's settings cannot be read: whether Actions run, "
            "the environments of the workflows and who approves them, the GPU runner, protected tags and branches.\n"
            + TYPE
        )
    where = Repository(name, token)
    facts = where.ask()
    if facts is None:
        raise Problem(
            f"GitHub has no repository {name}, or this token may not see it; create it and push, or use another "
            f"token: {TYPE}"
        )
    folder = plan.project.root / ".github/workflows"
    texts = "\n".join(file.read_text() for file in sorted(folder.glob("*.y*ml")))
    return [
        *_actions(where),
        *_environments(where, sorted(set(ENVIRONMENT.findall(texts)))),
        *_runner(where, plan, facts),
        *_attestations(facts, texts),
        *_protection(where, facts),
        *_publisher(plan, sorted(set(ENVIRONMENT.findall(texts)))),
    ]


def check(plan: Plan) -> str:
    """Raises if something that a tag needs is missing; returns a sentence if the settings could not be read."""
    if not repository(plan.project.root):
        return ""
    if not _token():
        return f"GitHub's settings were not checked, because there is no GH_TOKEN: {TYPE}"
    if lacking := [str(finding) for finding in look(plan) if finding.level == MISSING]:
        lines = ["GitHub is not set up for this tag:", *lacking, "--no-github-check tags anyway"]
        raise Problem("\n".join(lines))
    return ""


def _token() -> str:
    return os.environ.get("GH_TOKEN") or os.environ.get("GITHUB_TOKEN") or ""


def _actions(where: Repository) -> Iterator[Finding]:
    page = f"https://github.com/{where.name}/settings/actions"
    found = where.ask("/actions/permissions")
    if found is None:
        yield unknown("whether Actions may run", f"an admin's token reads it, or look: {page}")
        return
    allowed = found.get("allowed_actions", "all")
    if not found["enabled"]:
        yield missing("Actions are disabled, so a tag starts nothing", f"enable them: {page}")
    elif allowed == "local_only":
        yield missing(
            "actions of other repositories may not run, but the workflows use actions/*", page
        )
    elif allowed == "selected":
        do = f"the actions in .github/workflows must be among them: {page}"
        yield advice("only selected actions may run", do)
    else:
        yield ok("Actions may run")
    default = where.ask("/actions/permissions/workflow") or {}
    if default.get("default_workflow_permissions") == "write":
        what = "a workflow that names no permissions gets a token that can write"
        yield advice(what, f"choose `Read repository contents`: {page}")


def _environments(where: Repository, wanted: list[str]) -> Iterator[Finding]:
    page = f"https://github.com/{where.name}/settings/environments"
    found = where.ask("/environments?per_page=100")
    if found is None:
        what = f"the environments {', '.join(wanted)}"
        yield unknown(what, f"this token may not read them; look: {page}")
        return
    there = {environment["name"]: environment for environment in found["environments"]}
    for name in wanted:
        if name not in there:
            what = (
                f"there is no environment `{name}`; GitHub would create one that needs no approval"
            )
            yield missing(what, f"create it: {page}")
            continue
        rules = {rule["type"] for rule in there[name].get("protection_rules", [])}
        if name == APPROVED and "required_reviewers" not in rules:
            what = f"the environment `{name}` has no required reviewers, so nobody is asked before the upload"
            yield missing(what, f"add them: {page}")
        else:
            approval = ": somebody approves" if name == APPROVED else ""
            yield ok(f"the environment `{name}`{approval}")
        if not there[name].get("deployment_branch_policy"):
            what = f"every branch and tag may use the environment `{name}`"
            yield advice(what, f"allow only tags v*: {page}")


def _runner(where: Repository, plan: Plan, facts: dict[str, Any]) -> Iterator[Finding]:
    labels = set(plan.matrix.publish.gpu_runner)
    if not plan.matrix.publish.gpu_evidence or "self-hosted" not in labels:
        return
    named = f"the labels {', '.join(sorted(labels))}"
    do = "start or register it, or commit evidence and set publish.gpu_runner to a hosted one"
    found = where.ask("/actions/runners?per_page=100")
    if found is None:
        yield unknown(f"a runner with {named}", "an admin's token reads the list")
        return
    fitting = [r for r in found["runners"] if labels <= {label["name"] for label in r["labels"]}]
    if any(runner["status"] == "online" for runner in fitting):
        yield ok(f"a runner with {named} is online")
    elif fitting:
        yield advice(f"the runner with {named} is offline; a release waits for it", do)
    elif facts["owner"]["type"] == "Organization":
        yield unknown(
            f"the repository has no runner with {named}; the organisation may have one", do
        )
    else:
        yield missing(f"no runner has {named}", do)


def _attestations(facts: dict[str, Any], texts: str) -> Iterator[Finding]:
    if "actions/attest" in texts and facts.get("visibility", "public") == "private":
        what = (
            "the repository is private; there GitHub signs attestations only with Enterprise Cloud"
        )
        do = "make it public, or publish with the workflow that `wheelyard new` writes, which signs nothing"
        yield missing(what, do)


def _protection(where: Repository, facts: dict[str, Any]) -> Iterator[Finding]:
    page = f"https://github.com/{where.name}/settings/rules"
    branch = facts["default_branch"]
    found = where.ask(f"/branches/{urllib.parse.quote(branch, safe='')}")
    if found is None:
        yield missing(f"GitHub has no branch `{branch}` yet", "push it: git push -u origin HEAD")
    elif found.get("protected"):
        yield ok(f"the branch `{branch}` is protected")
    else:
        what = f"anyone who can push can change `{branch}` without review"
        yield advice(what, f"add a rule: {page}")
    rules = where.ask("/rulesets?targets=tag&per_page=100")
    if rules is None:
        yield unknown("whether tags are protected", f"look: {page}")
    elif any(rule["enforcement"] == "active" and rule.get("target") == "tag" for rule in rules):
        yield ok("tags have a rule")
    else:
        what = "anyone who can push can make, move or delete a version tag"
        yield advice(what, f"add a rule for the tags v*: {page}")


def _publisher(plan: Plan, environments: list[str]) -> Iterator[Finding]:
    hosts = {"pypi": "pypi.org", "testpypi": "test.pypi.org"}
    for name in environments:
        if name in hosts:
            place = f"https://{hosts[name]}/manage/project/{plan.project.name}/settings/publishing/"
            what = f"the Trusted Publisher for the environment `{name}`, which no token can read"
            yield unknown(what, f"look: {place}")

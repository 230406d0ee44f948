"""Tests `wheelyard doctor --github` against a server that answers as GitHub's REST API documents it."""

import http.server
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from repository import committed, git, write

WORKFLOW = """jobs:
  sign:
    steps:
      - uses: actions/attest@0123
  testpypi:
    environment: testpypi
  pypi:
    environment: pypi # protected: someone approves
"""
MATRIX = """[arch.x86_64]
[torch."2.15"]
[publish]
gpu_evidence = ["x86_64"]
gpu_runner = ["self-hosted", "gpu"]
"""
REVIEWERS = {"id": 1, "type": "required_reviewers", "prevent_self_review": True, "reviewers": []}
POLICY = {"protected_branches": False, "custom_branch_policies": True}
# The answers for a repository that has everything, shortened to the fields that are read and some that are not.
ALL: dict[str, Any] = {
    "": {"default_branch": "main", "visibility": "public", "owner": {"type": "User"}},
    "/actions/permissions": {"enabled": True, "allowed_actions": "all"},
    "/actions/permissions/workflow": {"default_workflow_permissions": "read"},
    "/environments?per_page=100": {
        "total_count": 2,
        "environments": [
            {"name": "testpypi", "protection_rules": [], "deployment_branch_policy": POLICY},
            {"name": "pypi", "protection_rules": [REVIEWERS], "deployment_branch_policy": POLICY},
        ],
    },
    "/actions/runners?per_page=100": {
        "total_count": 1,
        "runners": [
            {
                "status": "online",
                "labels": [{"name": "self-hosted"}, {"name": "gpu"}, {"name": "X64"}],
            }
        ],
    },
    "/branches/main": {"name": "main", "protected": True},
    "/rulesets?targets=tag&per_page=100": [{"id": 7, "target": "tag", "enforcement": "active"}],
}
NOT_ALLOWED = 404, {"message": "Not Found"}  # the same as for something that does not exist


class GitHub(http.server.ThreadingHTTPServer):
    answers: dict[str, Any]
    tokens: list[str]


class Handler(http.server.BaseHTTPRequestHandler):
    server: GitHub

    def do_GET(self) -> None:
        self.server.tokens.append(self.headers["Authorization"])
        path = "".join(self.path.partition("/repos/")[2].split("/", 2)[2:])
        found = self.server.answers.get(f"/{path}" if path else "", NOT_ALLOWED)
        status, body = found if isinstance(found, tuple) else (200, found)
        self.send_response(status)
        for name, value in body.pop("headers", {}).items() if isinstance(body, dict) else ():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def github() -> Iterator[GitHub]:
    with GitHub(("127.0.0.1", 0), Handler) as server:
        server.answers, server.tokens = json.loads(json.dumps(ALL)), []
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    texts = {
        "ci/matrix.toml": MATRIX,
        ".github/workflows/release.yml": WORKFLOW,
        "pyproject.toml": '[project]\nname = "mine"\nversion = "1.0.0"\n',
        "CHANGELOG.md": "# Changelog\n\n## [Unreleased]\n\n- New.\n",
    }
    committed(write(tmp_path, texts))
    git(tmp_path, "remote", "add", "origin", "git@github.com:me/mine.git")
    git(tmp_path, "config", "user.name", "me")
    git(tmp_path, "config", "user.email", "me@localhost")
    return tmp_path


def call(
    project: Path, github: GitHub, *words: str, token: str = "secret"
) -> subprocess.CompletedProcess[str]:
    kept = {n: v for n, v in os.environ.items() if not n.startswith(("GH_", "GITHUB_"))}
    told = {"GITHUB_API_URL": f"http://127.0.0.1:{github.server_port}", "GH_TOKEN": token}
    command = [sys.executable, "-m", "wheelyard", *(words or ("doctor", "--github"))]
    return subprocess.run(command, cwd=project, env=kept | told, capture_output=True, text=True)


def test_where_all_is_set_up(project: Path, github: GitHub) -> None:
    done = call(project, github)
    assert done.returncode == 0, done.stdout + done.stderr
    levels = [line.split()[0] for line in done.stdout.splitlines()]
    assert levels.count("ok") == 6
    assert not {"missing", "advice"}.intersection(levels)
    assert "https://pypi.org/manage/project/mine/settings/publishing/" in done.stdout
    assert set(github.tokens) == {"Bearer secret"}
    assert call(project, github, "tag", "1.1.0").returncode == 0


ENVIRONMENTS = "/environments?per_page=100"
RUNNERS = "/actions/runners?per_page=100"
OTHERWISE = {
    "missing  Actions are disabled": {"/actions/permissions": {"enabled": False}},
    "missing  actions of other "
    "repositories": {"/actions/permissions": {"enabled": True, "allowed_actions": "local_only"}},
    "missing  there is no environment `pypi`": {ENVIRONMENTS: {"environments": []}},
    "missing  the environment `pypi` has no required reviewers": {
        ENVIRONMENTS: {"environments": [{"name": "pypi", "protection_rules": [{"type": "wait_timer"}]}]}
    },
    "missing  no runner has the labels gpu, self-hosted": {RUNNERS: {"runners": []}},
    "missing  the repository is private": {"": {**ALL[""], "visibility": "private"}},
    "missing  GitHub has no branch `main`": {"/branches/main": NOT_ALLOWED},
    "advice   every branch and tag may use the environment `pypi`": {
        ENVIRONMENTS: {"environments": [{"name": n, "protection_rules": [REVIEWERS]} for n in ("testpypi", "pypi")]}
    },
    "advice   the runner with the labels gpu, self-hosted is offline": {
        RUNNERS: {"runners": [{**ALL[RUNNERS]["runners"][0], "status": "offline"}]}
    },
    "advice   anyone who can push can change `main`": {"/branches/main": {"protected": False}},
    "advice   anyone who can push can make, move": {
        "/rulesets?targets=tag&per_page=100": [{"target": "tag", "enforcement": "disabled"}]
    },
    "advice   a workflow that names no permissions": {
        "/actions/permissions/workflow": {"default_workflow_permissions": "write"}
    },
    "unknown  whether Actions may run": {"/actions/permissions": NOT_ALLOWED},
    "unknown  a runner with the labels": {RUNNERS: (403, {"message": "Must have admin rights"})},
    "unknown  the repository has no runner": {
        RUNNERS: {"runners": []}, "": {**ALL[""], "owner": {"type": "Organization"}}
    },
    "unknown  the environments pypi, testpypi": {ENVIRONMENTS: NOT_ALLOWED},
}  # fmt: skip


@pytest.mark.parametrize("expected", OTHERWISE)
def test_what_is_not_set_up_is_said_and_a_tag_waits_for_it(
    expected: str, project: Path, github: GitHub
) -> None:
    github.answers |= OTHERWISE[expected]
    is_missing = expected.startswith("missing")
    done = call(project, github)
    assert done.returncode == int(is_missing), done.stderr
    assert expected in done.stdout
    tagged = call(project, github, "tag", "1.1.0")
    assert tagged.returncode == int(is_missing), tagged.stderr
    if is_missing:
        assert expected in tagged.stderr
        assert call(project, github, "tag", "1.1.0", "--no-github-check").returncode == 0


REFUSED = {
    "GitHub refuses the token": (401, {"message": "Bad credentials"}),
    "rate limit": (403, {"message": "", "headers": {"x-ratelimit-remaining": "0"}}),
    "has no repository me/mine, or this token may not see it": NOT_ALLOWED,
    "answers 502": (502, {}),
}


@pytest.mark.parametrize("expected", REFUSED)
def test_where_github_does_not_answer(expected: str, project: Path, github: GitHub) -> None:
    github.answers[""] = REFUSED[expected]
    done = call(project, github)
    assert done.returncode == 1
    assert expected in done.stderr
    assert "Traceback" not in done.stderr


def test_without_a_network_a_token_or_a_repository_on_github(project: Path, github: GitHub) -> None:
    done = call(project, github, token="")
    assert done.returncode == 1
    assert "GH_TOKEN=$(gh auth token) wheelyard doctor --github" in done.stderr
    assert "were not checked" in call(project, github, "tag", "1.1.0", token="").stdout
    assert github.tokens == []
    github.server_close()
    assert "GitHub does not answer" in call(project, github).stderr
    assert "GitHub does not answer" in call(project, github, "tag", "1.2.0").stderr
    subprocess.run(["git", "remote", "remove", "origin"], cwd=project, check=True)
    assert "not a repository on GitHub" in call(project, github).stderr
    assert call(project, github, "tag", "1.2.0", token="").stdout == ""

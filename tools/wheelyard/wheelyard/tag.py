"""Tag: makes the release commit and its tag, or leaves everything as it was.

The tree must be clean and the changelog must say what is new. If anything fails on the way, the tree is restored.
`--check` instead checks that HEAD's tag, version and changelog agree, and with `--on BRANCH` that HEAD is part of that
branch, where changes are reviewed.
"""

import datetime
import os
import sys
import tomllib
from pathlib import Path

from packaging.version import InvalidVersion, Version

from wheelyard.core import git
from wheelyard.plan.project import Project, load, why_no_commit
from wheelyard.problem import Problem

UNRELEASED = "## [Unreleased]"


def check_head(project: Project, branch: str | None = None) -> None:
    """Checks that the tag on HEAD is the version in pyproject.toml, and that the changelog has that version."""
    check_agreement(project)
    if branch is not None:
        _check_branch(project, branch)
    version = project.version or project.version_tag.removeprefix("v")
    if not section(_changelog(project).read_text(), version):
        raise Problem(f"CHANGELOG.md says nothing under [{version}]; write it, then tag again")
    print(f"HEAD is v{version}")


def check_agreement(project: Project) -> None:
    """Checks that HEAD is a clean tree with the tag of its own version."""
    if not project.commit:
        raise Problem(why_no_commit(project.root))
    if project.commit.endswith("+"):
        raise Problem("the tree has uncommitted changes; commit them, tag, and build again")
    if not project.version and project.version_tag:
        return  # the version is made from the tag
    if project.version_tag != f"v{project.version}":
        raise Problem(
            f"HEAD carries {project.version_tag or 'no version tag'}, but pyproject.toml says "
            f"{project.version}; tag the release commit v{project.version}: `wheelyard tag {project.version}`"
        )


def _check_branch(project: Project, branch: str) -> None:
    """Checks that HEAD is the commit that the workflow was started for, and part of `branch`."""
    head = git.call(project.root, "rev-parse", "HEAD")
    if (started := os.environ.get("GITHUB_SHA", head)) != head:
        raise Problem(
            f"the tag was moved from {started} to {head} after this run started; nothing is released from here: "
            "push the tag of the next version"
        )
    if not git.ask(project.root, "rev-parse", "--verify", "--quiet", f"{branch}^{{commit}}"):
        raise Problem(f"this clone has no {branch}; fetch it with its history (fetch-depth: 0)")
    if git.ask(project.root, "merge-base", "HEAD", branch) != head:
        raise Problem(
            f"{head[:12]} is not part of {branch}, so nobody has reviewed it there; merge it, then tag "
            "the merged commit"
        )


def make(project: Project, text: str) -> None:
    version = _checked(project, text)
    head, changelog = project.commit, _changelog(project)
    pyproject = project.root / "pyproject.toml"
    today = datetime.datetime.now(datetime.UTC).date()
    released_text = released(changelog.read_text(), version, today)
    # A version that the build makes from git's tags is written in no file.
    versioned = with_version(pyproject.read_text(), version) if project.version else ""
    try:
        changelog.write_text(released_text)
        if versioned:
            pyproject.write_text(versioned)
        if project.commit.endswith("+"):
            git.call(project.root, "commit", "--quiet", "--all", "--message", f"Release {version}")
        git.call(
            project.root, "tag", "--annotate", f"v{version}", "--message", f"Release {version}"
        )
        check_head(load(project.root, project.name, project.import_name, project.folder))
    except BaseException:
        git.ask(project.root, "tag", "--delete", f"v{version}")
        git.ask(project.root, "reset", "--quiet", "--hard", head)
        print("undone: the tree and the tags are as they were", file=sys.stderr)
        raise
    print(
        f"Look at it:  git show v{version}\n"
        f"Release it:  git push --atomic origin HEAD v{version}\n"
        f"Or undo it:  git tag --delete v{version} && git reset --hard {head}"
    )


def _checked(project: Project, text: str) -> str:
    """Returns the version, after checking that it may be tagged now."""
    try:
        version = Version(text)
    except InvalidVersion:
        raise Problem(f"`{text}` is not a version; give one like 1.2.3 or 1.2.3rc1") from None
    if str(version) != text or len(version.release) != 3 or version.local:
        raise Problem(f"`{text}` is not of the form 1.2.3 or 1.2.3rc1; PyPI would change it")
    if project.version and version < Version(project.version):
        raise Problem(
            f"{text} is older than {project.version} in pyproject.toml; choose a newer one"
        )
    if not project.commit:
        raise Problem(why_no_commit(project.root))
    if project.commit.endswith("+"):
        raise Problem(
            f"the tree has changes; commit or stash them first: {', '.join(project.changes[:4])}"
        )
    if git.ask(project.root, "tag", "--list", f"v{text}"):
        raise Problem(f"the tag v{text} exists; a released version never changes: choose the next")
    return text


def with_version(pyproject: str, version: str) -> str:
    """Returns pyproject.toml with another project version."""
    old = tomllib.loads(pyproject)["project"]["version"]
    line = f'version = "{old}"'
    if pyproject.count(line) != 1:
        raise Problem(f"pyproject.toml must have the line `{line}` exactly once")
    return pyproject.replace(line, f'version = "{version}"')


def released(changelog: str, version: str, day: datetime.date) -> str:
    """Returns the changelog with the unreleased entries moved under the version, if it has none yet."""
    if section(changelog, version):
        if section(changelog, "Unreleased"):
            raise Problem(
                f"CHANGELOG.md has [{version}] already, and more under [Unreleased]; choose the next version"
            )
        return changelog
    if UNRELEASED not in changelog:
        raise Problem(f"CHANGELOG.md lacks the line `{UNRELEASED}`; see keepachangelog.com")
    if not section(changelog, "Unreleased"):
        raise Problem("CHANGELOG.md says nothing under [Unreleased]; tell users what is new")
    return changelog.replace(UNRELEASED, f"{UNRELEASED}\n\n## [{version}] - {day}", 1)


def section(changelog: str, name: str) -> str:
    """Returns the changelog's text under a heading; empty if there is none."""
    _, _, rest = changelog.partition(f"\n## [{name}]")
    return rest.partition("\n")[2].partition("\n## [")[0].strip()


def _changelog(project: Project) -> Path:
    file = project.root / "CHANGELOG.md"
    if not file.is_file():
        raise Problem(f"{file} is missing; tell users there what is new, see keepachangelog.com")
    return file

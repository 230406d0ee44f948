"""Tag: makes the release commit and its tag, or nothing: `make tag VERSION=x.y.z`.

The tree must be clean and the changelog must say what is new. If anything fails on the way, the
tree is put back as it was. `--check` asks instead whether HEAD's tag, version and changelog agree.
"""

import argparse
import datetime
import subprocess
import sys

from packaging.version import InvalidVersion, Version

from ci import project
from ci.build import with_version
from ci.errors import Problem
from ci.project import ROOT

CHANGELOG, PYPROJECT = ROOT / "CHANGELOG.md", ROOT / "pyproject.toml"
UNRELEASED = "## [Unreleased]"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m ci.tag", description=__doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("version", nargs="?", help="the version to release: x.y.z")
    what.add_argument("--check", action="store_true", help="does HEAD agree with itself?")
    arguments = parser.parse_args()
    try:
        if arguments.check:
            check_head()
        else:
            make(arguments.version)
    except Problem as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1
    return 0


def check_head() -> None:
    """The tag on HEAD is the version in pyproject.toml, and the changelog has that version."""
    version = project.load().version
    check_agreement()
    if not section(CHANGELOG.read_text(), version):
        raise Problem(f"CHANGELOG.md says nothing under [{version}]; write it, then tag again")
    print(f"HEAD is v{version}")


def check_agreement() -> None:
    """HEAD is a clean tree that carries the tag of its own version."""
    version = project.load().version
    if not project.commit() or project.commit().endswith("+"):
        raise Problem("the tree has uncommitted changes; commit them, tag, and build again")
    if project.version_tag() != f"v{version}":
        raise Problem(
            f"HEAD carries {project.version_tag() or 'no version tag'}, but pyproject.toml says "
            f"{version}; tag the release commit v{version}: `make tag VERSION={version}`"
        )


def make(text: str) -> None:
    version = _checked(text)
    head = project.commit()
    changelog = released(CHANGELOG.read_text(), version, datetime.datetime.now(datetime.UTC).date())
    pyproject = with_version(PYPROJECT.read_text(), version)
    try:
        CHANGELOG.write_text(changelog)
        PYPROJECT.write_text(pyproject)
        if project.commit().endswith("+"):
            _git("commit", "--quiet", "--all", "--message", f"Release {version}")
        _git("tag", "--annotate", f"v{version}", "--message", f"Release {version}")
        check_head()
    except BaseException:
        subprocess.run(["git", "tag", "--delete", f"v{version}"], cwd=ROOT, capture_output=True)
        subprocess.run(["git", "reset", "--quiet", "--hard", head], cwd=ROOT, check=True)
        print("undone: the tree and the tags are as they were", file=sys.stderr)
        raise
    print(
        f"Look at it:  git show v{version}\n"
        f"Release it:  git push --atomic origin HEAD v{version}\n"
        f"Or undo it:  git tag --delete v{version} && git reset --hard {head}"
    )


def _checked(text: str) -> str:
    """A version that may be tagged now."""
    current = project.load().version
    try:
        version = Version(text)
    except InvalidVersion:
        raise Problem(f"`{text}` is no version; give it like 1.2.3 or 1.2.3rc1") from None
    if str(version) != text or len(version.release) != 3 or version.local:
        raise Problem(f"`{text}` is not of the form 1.2.3 or 1.2.3rc1; PyPI would not serve it so")
    if version < Version(current):
        raise Problem(f"{text} is older than {current} in pyproject.toml; choose a newer one")
    if not project.commit() or project.commit().endswith("+"):
        raise Problem("the tree has changes; commit or stash them first (`git status`)")
    if _git("tag", "--list", f"v{text}"):
        raise Problem(f"the tag v{text} exists; a released version never changes: choose the next")
    return text


def released(changelog: str, version: str, day: datetime.date) -> str:
    """The changelog with the unreleased entries under the version, where it has none yet."""
    if section(changelog, version):
        return changelog
    if UNRELEASED not in changelog:
        raise Problem(f"CHANGELOG.md lacks the line `{UNRELEASED}`; see keepachangelog.com")
    if not section(changelog, "Unreleased"):
        raise Problem("CHANGELOG.md says nothing under [Unreleased]; tell users what is new")
    return changelog.replace(UNRELEASED, f"{UNRELEASED}\n\n## [{version}] - {day}", 1)


def section(changelog: str, name: str) -> str:
    """What the changelog says under a heading; empty if nothing."""
    _, _, rest = changelog.partition(f"\n## [{name}]")
    return rest.partition("\n")[2].partition("\n## [")[0].strip()


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        raise Problem(f"git {words[0]} failed: {done.stderr.strip()}")
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())

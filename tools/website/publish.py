"""Pushes a folder as the branch that the code host serves as a web site: `python -m tools.website.publish build/site`.

The branch has one commit. Neither the files here nor the checked-out branch change. It needs only Python and git.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

BRANCH = "gh-pages"
WHO = {
    f"GIT_{role}_{what}": value
    for role in ("AUTHOR", "COMMITTER")
    for what, value in (
        ("NAME", "github-actions"),
        ("EMAIL", "github-actions@users.noreply.github.com"),
    )
}


def publish(site: Path, repository: Path) -> None:
    if not (site / "index.html").is_file():
        sys.exit(f"error: {site} has no index.html; `make docs` makes the site")
    (site / ".nojekyll").touch()  # makes the host serve the files as they are
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | WHO | {"GIT_INDEX_FILE": str(Path(folder) / "index")}

        def git(*words: str) -> str:
            command = ["git", "-C", str(repository), *words]
            return subprocess.run(
                command, env=environment, check=True, stdout=subprocess.PIPE, text=True
            ).stdout.strip()

        of = git("rev-parse", "--short", "HEAD")
        git(f"--work-tree={site.resolve()}", "add", "--force", "--all")
        commit = git("commit-tree", git("write-tree"), "-m", f"The site of {of}")
        git("push", "--quiet", "--force", "origin", f"{commit}:refs/heads/{BRANCH}")
    print(f"the site of {of} is {BRANCH} now")


if __name__ == "__main__":
    publish(Path(sys.argv[1]), Path.cwd())

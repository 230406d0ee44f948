"""Opens a pull request with the locks that another job has renewed: `python -m tools.release.propose_locks FOLDER`.

That job ran the code of new packages, and this one can write to the repository. So it takes only the known locks from
the folder, and from those only lines that a lock has: packages with versions, markers, hashes and comments. It needs
nothing but Python, git and GitHub's `gh`.
"""

import re
import subprocess
import sys
from pathlib import Path

from tools.release.locks import LOCKS, ROOT, moved, pins

BRANCH = "renew-locks"
TITLE = "Renew the locks"
HASH = "--hash=sha256:[0-9a-f]{64}"
LINE = re.compile(
    rf"[\w.-]+==[\w.!+-]+( ; [\w .'\"<>=!()-]+)?( {HASH})?( \\)?|    {HASH}( \\)?|    #[ -~]*"
)


def run(*words: str) -> str:
    return subprocess.run(words, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def is_lock(text: str) -> bool:
    return bool(text) and all(LINE.fullmatch(line) for line in text.splitlines())


def take(folder: Path) -> list[str]:
    """Takes over the locks that differ; returns the rows of a table of the changes."""
    rows = []
    for lock in LOCKS:
        name = f"{lock.name}.lock"
        source, target = folder / name, ROOT / name
        if source.is_symlink() or not source.is_file():
            sys.exit(f"error: {folder} has no {name}; does the job that renews it upload it?")
        new, old = source.read_text(), target.read_text()
        if not is_lock(new):
            sys.exit(f"error: {name} has lines that no lock has; nothing is proposed")
        rows += [f"| {name} | {' | '.join(row)} |" for row in moved(pins(old), pins(new))]
        target.write_text(new)
    return rows


def main() -> None:
    rows = take(Path(sys.argv[1]))
    if not run("git", "status", "--porcelain"):
        print("every lock is as it was")
        return
    body = "\n".join(
        [
            "Every test passed with these versions.",
            "",
            "| lock | package | was | is |",
            "|---|---|---|---|",
            *rows,
        ]
    )
    run("git", "switch", "--quiet", "--create", BRANCH)
    who = [
        "-c",
        "user.name=github-actions",
        "-c",
        "user.email=github-actions@users.noreply.github.com",
    ]
    run("git", *who, "commit", "--quiet", "--all", "--message", TITLE)
    run("gh", "auth", "setup-git")
    run("git", "push", "--quiet", "--force", "origin", BRANCH)
    if BRANCH not in run("gh", "pr", "list", "--head", BRANCH, "--json", "headRefName"):
        run("gh", "pr", "create", "--head", BRANCH, "--title", TITLE, "--body", body)
    # A push with a workflow's own token starts no workflow, except one that is started by name.
    run("gh", "workflow", "run", "ci.yml", "--ref", BRANCH)
    print(body)


if __name__ == "__main__":
    main()

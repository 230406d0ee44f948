"""Checks that each action in the workflows is pinned to the commit of the tag beside it: `make check-actions`.

The tags are looked up in the actions' own repositories. An argument names another place to find these, such as
`/mirror/{owner}/{name}`.
"""

import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
SOURCE = "https://github.com/{owner}/{name}"
USES = re.compile(r"^ *(?:- )?uses: ([\w-]+/[\w-]+)@(\w+)(?: # (\S+))?$", re.MULTILINE)


class Pin(NamedTuple):
    action: str
    commit: str
    tag: str


def pins(workflows: Path) -> set[Pin]:
    """Returns the actions that the workflows use: each with its commit and the tag beside it."""
    files = workflows.glob("*.yml")
    return {Pin(*found) for file in files for found in USES.findall(file.read_text())}


def tagged_commit(action: str, tag: str, source: str) -> str:
    """Returns the commit that the tag points to, through the tag object if there is one."""
    owner, name = action.split("/")
    wanted = [f"refs/tags/{tag}", f"refs/tags/{tag}^{{}}"]
    command = ["git", "ls-remote", source.format(owner=owner, name=name), *wanted]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode or not done.stdout:
        raise SystemExit(f"error: {action} has no tag {tag}, or does not answer: {done.stderr}")
    return done.stdout.splitlines()[-1].split()[0]


def main() -> None:
    source = sys.argv[1] if len(sys.argv) > 1 else SOURCE
    used = sorted(pins(ROOT / ".github/workflows"))
    for pin in used:
        commit = tagged_commit(pin.action, pin.tag, source)
        if commit != pin.commit:
            raise SystemExit(f"error: {pin.action} {pin.tag} is {commit}, not {pin.commit}")
    print(f"each of {len(used)} actions is pinned to the commit of its tag")


if __name__ == "__main__":
    main()

"""Records the tag of each action's pinned commit in .github/actions.lock: `make lock-actions`.

The tags are looked up in the actions' own repositories; a commit that its tag does not point to is an error. The tests
compare the workflows with this record without a network. An argument names another place to find the repositories, such
as `/mirror/{owner}/{name}`.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
LOCK = ROOT / ".github/actions.lock"
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


def recorded(lock: Path = LOCK) -> Iterator[Pin]:
    for line in lock.read_text().splitlines():
        if not line.startswith("#"):
            action, tag, commit = line.split()
            yield Pin(action, commit, tag)


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
    head = "# Each action of the workflows: its tag and commit. Made by `make lock-actions`.\n"
    lines = [f"{pin.action} {pin.tag} {pin.commit}\n" for pin in used]
    LOCK.write_text(head + "".join(lines))
    print(f"{LOCK.relative_to(ROOT)}: {len(used)} actions")


if __name__ == "__main__":
    main()

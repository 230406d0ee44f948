"""Reads the command blocks of the pages: which lines are commands, and what they are said to print.

A fenced block without a language is a shell's. Lines that begin with `$ ` are commands, each followed by its output; in
a block without such a line every line is a command. In output, a line `...` stands for any lines, and `...` or `…` in a
line for any text. Comments above a block, which no reader of the page sees, say how it is run:

    <!-- in: a copy of the repository -->           where, if not in the repository itself (scenes.py)
    <!-- not run: needs a GPU -->                   that it is not, and why
    <!-- not run: `gh`, `pip download`: needs … -->   the same of its commands that begin like these
"""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]
BLOCK = re.compile(r"((?:^<!-- .+? -->\n)*)^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LEFT_OUT = re.compile(r"((?:`[^`]+`(?:, )?)+): (.+)")
COMMAND = re.compile(r"(?:.*\\\n)*.*\n")  # it ends at the first line without a backslash at its end
SHELLS = {"", "sh", "bash", "shell", "console"}


@dataclass(frozen=True)
class Step:
    command: str
    output: str | None  # None: the page shows no output


@dataclass(frozen=True)
class Block:
    page: str
    line: int
    language: str
    scene: str  # where it is run
    reason: str  # why it, or a part of it, is not run
    left_out: tuple[str, ...]  # the starts of the commands in that part
    text: str

    @property
    def is_run(self) -> bool:
        return not self.reason or bool(self.left_out)

    @property
    def steps(self) -> list[Step]:
        """The commands of the block that are run."""
        if re.search(r"^\$ ", self.text, re.MULTILINE):
            parts = re.split(r"^\$ ", self.text, flags=re.MULTILINE)[1:]
            steps = [Step(*_command_and_output(part)) for part in parts]
            return [step for step in steps if not step.command.startswith(self.left_out)]
        commands = [c for c in COMMAND.findall(self.text) if not c.startswith(self.left_out)]
        return [Step("".join(commands), None)]


def _command_and_output(part: str) -> tuple[str, str]:
    command = COMMAND.match(part)
    assert command
    return command[0], part[command.end() :]


def pages() -> list[str]:
    return subprocess.check_output(["git", "ls-files", "*.md"], cwd=ROOT, text=True).split()


def blocks(page: str, text: str | None = None) -> list[Block]:
    """Returns a page's shell blocks, in the order of the page."""
    text = (ROOT / page).read_text() if text is None else text
    return [
        _block(page, text.count("\n", 0, found.start(2)) + 1, found)
        for found in BLOCK.finditer(text)
        if found[2] in SHELLS
    ]


def _block(page: str, line: int, found: "re.Match[str]") -> Block:
    comments = dict(re.findall(r"<!-- (in|not run): (.+) -->", found[1]))
    reason, left_out = comments.get("not run", ""), ()
    if part := LEFT_OUT.fullmatch(reason):
        left_out, reason = tuple(re.findall("`([^`]+)`", part[1])), part[2]
    return Block(page, line, found[2], comments.get("in", ""), reason, left_out, found[3])


def matches(expected: str, said: str) -> bool:
    """Whether output is what a page quotes, with `...` for what it leaves out."""
    pattern = ""
    for line in expected.splitlines():
        if line.strip() in ("...", "…"):
            pattern += r"(?:.*\n)*?"
        else:
            pattern += ".*".join(re.escape(part) for part in re.split(r"\.\.\.|…", line)) + r" *\n"
    return (
        re.fullmatch(pattern, said if said.endswith("\n") or not said else said + "\n") is not None
    )

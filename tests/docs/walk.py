"""The command blocks of the pages: which lines are commands, what they are said to print, and whether they do.

A fenced block without a language is a shell's. Lines that begin with `$ ` are commands, each followed by its output; in
a block without such a line every line is a command. In output, a line `...` stands for any lines, and `...` or `…` in
a line for any text. A block that cannot run in a test is preceded by `<!-- not run: the reason -->`.
"""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(
    r"(?:^<!-- not run: (.+?) -->\n)?^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True)
class Step:
    command: str
    output: str | None  # None: nothing is said of it


@dataclass(frozen=True)
class Block:
    page: str
    line: int
    reason: str  # why it is not run
    text: str

    @property
    def steps(self) -> list[Step]:
        if not re.search(r"^\$ ", self.text, re.MULTILINE):
            return [Step(self.text, None)]
        parts = re.split(r"^\$ ", self.text, flags=re.MULTILINE)[1:]
        return [Step(*_command_and_output(part)) for part in parts]


def _command_and_output(part: str) -> tuple[str, str]:
    """A command ends at the first line that does not end in a backslash."""
    command = re.match(r"(?:.*\\\n)*.*\n", part)
    assert command
    return command[0], part[command.end() :]


def blocks(page: str) -> list[Block]:
    text = (ROOT / page).read_text()
    return [
        Block(page, text.count("\n", 0, block.start()) + 1, block[1] or "", block[3])
        for block in BLOCK.finditer(text)
        if not block[2]
    ]


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

"""What the references answer, the differences from them, the explanations in tests/differences.toml,
and a page with all of it.

Asking the references about a wheel takes minutes, so their answers are kept beside it
(*.answers.json), each with the version of its tool. Delete them after changing a module of
references/.
"""

import json
import tempfile
import tomllib
import zipfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from validation import program
from validation.corpus.download import read_list
from validation.corpus.reference import Facts
from validation.corpus.references.claims import EMAIL, PACKAGING
from validation.corpus.references.device_code import CUOBJDUMP_ALL
from validation.corpus.references.installation import INSTALLATION
from validation.corpus.references.loader import GLIBC
from validation.corpus.references.platforms import AUDITWHEEL
from validation.corpus.references.torch_abi import TORCH_ABI_AUDIT

REFERENCES = (EMAIL, PACKAGING, INSTALLATION, AUDITWHEEL, CUOBJDUMP_ALL, TORCH_ABI_AUDIT, GLIBC)
EXPLANATIONS = program.ROOT / "tests/differences.toml"
HEAD = """# wheelscope on real wheels

What wheelscope says of the wheels of [the list](../tests/corpus.txt), compared with what reference tools
say of the same files. `make corpus-compare` downloads them, compares and writes this page. It fails on a difference
that [the list of explained ones](../tests/differences.toml) does not cover.
"""


def answers(wheel: Path) -> dict[str, Facts]:
    """Returns each reference's facts; kept ones if the tool's version is the same."""
    file = wheel.with_suffix(".answers.json")
    kept: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    stale = [
        tool for tool in REFERENCES if kept.get(tool.name, {}).get("version") != tool.version()
    ]
    if stale:
        with tempfile.TemporaryDirectory(dir=wheel.parent) as name:
            tree = Path(name)
            with zipfile.ZipFile(wheel) as members:
                members.extractall(tree)
            for tool in stale:
                kept[tool.name] = {"version": tool.version(), "facts": tool.ask(wheel, tree)}
        file.write_text(json.dumps(kept, indent=1) + "\n")
    return {tool.name: kept[tool.name]["facts"] for tool in REFERENCES}


@dataclass(frozen=True)
class Difference:
    reference: str
    wheel: str
    member: str  # "" for the wheel as a whole
    fact: str
    theirs: Any
    ours: Any


@dataclass(frozen=True)
class Explanation:
    """All fields may be patterns; `theirs` and `ours` may be missing."""

    reference: str
    wheel: str
    fact: str
    reason: str
    member: str = "*"
    theirs: str = "*"
    ours: str = "*"

    def covers(self, difference: Difference) -> bool:
        names = ("reference", "wheel", "member", "fact")
        said = asdict(difference)
        return all(fnmatchcase(said[name], getattr(self, name)) for name in names) and all(
            fnmatchcase(str(said[side]), getattr(self, side)) for side in ("theirs", "ours")
        )


def explanations() -> list[Explanation]:
    listed = tomllib.loads(EXPLANATIONS.read_text()).get("difference", [])
    return [Explanation(**entry) for entry in listed]


@dataclass(frozen=True)
class Result:
    """The result for one wheel."""

    program: str  # the build of wheelscope
    size: int
    confirmed: int  # errors of `check` that a reference sees as well
    differences: list[Difference]


def kept_result(wheel: Path) -> Result | None:
    """Returns the result of the same build that is kept beside the wheel."""
    file = wheel.with_suffix(".compared.json")
    if not file.exists():
        return None
    kept = json.loads(file.read_text())
    if kept["program"] != program.version():
        return None
    found = [Difference(**one) for one in kept.pop("differences")]
    return Result(**kept, differences=found)


@dataclass
class Outcome:
    wheels: int = 0
    size: int = 0
    confirmed: int = 0  # errors of `check` that a reference sees as well
    asked: Counter[str] = field(default_factory=Counter)  # reference -> wheels
    facts: Counter[str] = field(default_factory=Counter)  # reference -> facts that it gave
    # (reference, whether it is explained) -> how many
    differences: Counter[tuple[str, bool]] = field(default_factory=Counter)
    unexplained: list[Difference] = field(default_factory=list)

    def count(self, wheel: Path, result: Result) -> None:
        self.wheels += 1
        self.size += result.size
        self.confirmed += result.confirmed
        for name, said in answers(wheel).items():
            self.asked[name] += bool(said)
            self.facts[name] += sum(map(len, said.values()))

    def table(self) -> str:
        lines = [
            f"{self.wheels} of the {len(read_list())} wheels, {self.size / 1e9:.1f} GB.",
            "",
            "| reference | version | wheels it speaks of | facts compared | explained | unexplained |",
            "|---|---|---:|---:|---:|---:|",
        ]
        for tool in REFERENCES:
            explained, unexplained = (self.differences[tool.name, how] for how in (True, False))
            lines.append(
                f"| {tool.name} | {tool.version()} | {self.asked[tool.name]} |"
                f" {self.facts[tool.name]} | {explained} | {unexplained} |"
            )
        explained, unexplained = (self.differences["check", how] for how in (True, False))
        lines += [
            "",
            f"`check` without a policy: {self.confirmed} errors that a reference confirms,"
            f" {explained} that are explained, {unexplained} false ones.",
        ]
        return "\n".join(lines)


def summary(outcome: Outcome, used: Iterable[Explanation]) -> str:
    lines = []
    if outcome.unexplained:
        lines = [
            "## Open",
            "",
            "| reference | wheel | fact | theirs | ours |",
            "|---|---|---|---|---|",
        ]
        lines += [
            f"| {d.reference} | `{d.wheel}` | {d.fact} | {d.theirs or ''} | {d.ours} |"
            for d in outcome.unexplained
        ]
        lines.append("")
    lines += [
        "## Explained differences",
        "",
        "| reference | wheel | fact | why |",
        "|---|---|---|---|",
    ]
    lines += [f"| {e.reference} | `{e.wheel}` | {e.fact} | {e.reason} |" for e in used]
    return "\n".join([HEAD, outcome.table(), "", *lines, ""])

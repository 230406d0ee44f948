"""Differences from a reference, and those of them that tests/differences.toml explains."""

import tomllib
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from typing import Any

from validation.corpus.download import ROOT

EXPLANATIONS = ROOT / "tests/differences.toml"


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
    """All may be patterns; `theirs` and `ours` may be left out."""

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

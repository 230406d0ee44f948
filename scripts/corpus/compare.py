"""Compares what wheelscope says of the corpus with what the reference tools say.

Prints each difference with the reference that said otherwise, and how many there are for each. The
explained ones are listed in tests/wheelscope/differences.toml, with the evidence that wheelscope is
right; any other fails.
"""

import argparse
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from scripts.corpus import program
from scripts.corpus.answers import REFERENCES, answers
from scripts.corpus.confirm import is_confirmed
from scripts.corpus.download import ROOT, read_list

EXPLANATIONS = ROOT / "tests/wheelscope/differences.toml"


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


def differences(wheel: Path) -> Iterator[Difference]:
    (item,) = program.ask("show", wheel)["items"]
    theirs = answers(wheel)
    for tool in REFERENCES:
        said = tool.ours(item, wheel, theirs[tool.name])
        for member in sorted(said.keys() | theirs[tool.name].keys()):
            one, other = theirs[tool.name].get(member, {}), said.get(member, {})
            for fact in sorted(one.keys() | other.keys()):
                if one.get(fact) != other.get(fact):
                    yield Difference(
                        tool.name, wheel.name, member, fact, one.get(fact), other.get(fact)
                    )


def errors(wheel: Path) -> Iterator[Difference]:
    """The errors that `check` without a policy finds and no reference confirms."""
    (item,) = program.ask("check", wheel)["items"]
    found = [finding for finding in item["findings"] if finding["level"] == "error"]
    theirs = answers(wheel) if found else {}
    for finding in found:
        if not is_confirmed(wheel, item, finding, theirs):
            yield Difference(
                "check", wheel.name, finding["place"] or "", finding["id"], None, finding["what"]
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("build/corpus"))
    parser.add_argument("--wheel", default="*", help="a pattern for the file names to compare")
    options = parser.parse_args()
    known = explanations()
    used: set[Explanation] = set()
    counts: Counter[tuple[str, str]] = Counter()
    wheels = [w.file_name for w in read_list() if fnmatchcase(w.file_name, options.wheel)]
    for name in wheels:
        wheel = options.folder / name
        for found in [*differences(wheel), *errors(wheel)]:
            why = [entry for entry in known if entry.covers(found)]
            used.update(why)
            verdict = "explained" if why else "UNEXPLAINED"
            counts[found.reference, verdict] += 1
            if not why:
                print(f"{found.reference}: {name} {found.member}: {found.fact}")
                print(f"    theirs {found.theirs}\n    ours   {found.ours}", flush=True)
    print(f"{len(wheels)} wheels compared")
    for tool in [*(tool.name for tool in REFERENCES), "check"]:
        print(
            f"{tool:>16}: {counts[tool, 'UNEXPLAINED']} differences without an explanation,"
            f" {counts[tool, 'explained']} with one"
        )
    stale = [entry for entry in known if entry not in used and options.wheel == "*"]
    for entry in stale:
        print(f"no longer so: {entry}")
    sys.exit(bool(stale) or any(verdict == "UNEXPLAINED" for _, verdict in counts))


if __name__ == "__main__":
    main()

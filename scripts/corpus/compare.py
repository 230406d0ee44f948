"""Compares what wheelscope says of the corpus with what the reference tools say.

Prints each difference with the reference that said otherwise, and how many there are for each. The
explained ones are listed in tests/wheelscope/differences.toml, with the evidence that wheelscope is
right; any other fails. The whole corpus takes 11 GB; with --delete 4 GB are enough.
"""

import argparse
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from scripts.corpus import program
from scripts.corpus.answers import REFERENCES, answers
from scripts.corpus.confirm import is_confirmed
from scripts.corpus.download import fetch, read_list
from scripts.corpus.explained import Difference, Explanation, explanations
from scripts.corpus.outcome import Outcome, summary
from scripts.corpus.references.device_code import is_toolbox
from scripts.corpus.references.loader import TORCH


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


@dataclass(frozen=True)
class Errors:
    """What `check` without a policy calls an error in a wheel that PyPI took."""

    confirmed: list[Difference]  # by a reference: the wheel is not healthy
    alone: list[Difference]  # nobody else sees it


def errors(wheel: Path) -> Errors:
    (item,) = program.ask("check", wheel)["items"]
    found = [finding for finding in item["findings"] if finding["level"] == "error"]
    theirs = answers(wheel) if found else {}
    sorted_out = Errors([], [])
    for finding in found:
        confirmed = is_confirmed(wheel, item, finding, theirs)
        (sorted_out.confirmed if confirmed else sorted_out.alone).append(
            Difference(
                "check", wheel.name, finding["place"] or "", finding["id"], None, finding["what"]
            )
        )
    return sorted_out


def is_provider(file_name: str) -> bool:
    """Whether references take a tool or libraries from this wheel of the corpus."""
    return file_name == TORCH or is_toolbox(file_name)


def fetched(names: list[str], folder: Path, delete: bool) -> Iterator[Path]:
    """The wheels one after the other, the next one being downloaded meanwhile; with `delete`, each
    is removed when it has been compared, but for those that references take tools from."""
    wheels = [wheel for wheel in read_list() if wheel.file_name in names]
    for wheel in read_list():
        if is_provider(wheel.file_name):
            fetch(wheel, folder)
    with ThreadPoolExecutor(1) as downloads:
        coming = [downloads.submit(fetch, wheel, folder) for wheel in wheels[:1]]
        for number, wheel in enumerate(wheels):
            coming.pop().result()
            coming += [downloads.submit(fetch, one, folder) for one in wheels[number + 1 :][:1]]
            yield folder / wheel.file_name
            if delete and not is_provider(wheel.file_name):
                (folder / wheel.file_name).unlink()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("build/corpus"))
    parser.add_argument("--wheel", default="*", help="a pattern for the file names to compare")
    parser.add_argument(
        "--delete", action="store_true", help="keep no wheel on the disk once it is compared"
    )
    parser.add_argument("--summary", type=Path, help="write the result into this Markdown file")
    options = parser.parse_args()
    known = explanations()
    used: set[Explanation] = set()
    outcome = Outcome()
    names = [w.file_name for w in read_list() if fnmatchcase(w.file_name, options.wheel)]
    for wheel in fetched(names, options.folder, options.delete):
        outcome.count(wheel)
        checked = errors(wheel)
        outcome.confirmed += len(checked.confirmed)
        for found in [*differences(wheel), *checked.alone]:
            why = [entry for entry in known if entry.covers(found)]
            used.update(why)
            outcome.differences[found.reference, bool(why)] += 1
            if not why:
                print(f"{found.reference}: {wheel.name} {found.member}: {found.fact}")
                print(f"    theirs {found.theirs}\n    ours   {found.ours}", flush=True)
    print(outcome.table())
    stale = [entry for entry in known if entry not in used and options.wheel == "*"]
    for entry in stale:
        print(f"no longer so: {entry}")
    if options.summary:
        options.summary.write_text(summary(outcome, sorted(used, key=lambda e: e.reference)))
    sys.exit(bool(stale) or any(not explained for _, explained in outcome.differences))


if __name__ == "__main__":
    main()

"""Compares wheelscope's answers on the corpus with those of the reference tools.

Prints each difference with the reference that disagrees, and how many there are for each.
tests/differences.toml lists the explained ones, with the evidence that wheelscope is right; any
other fails. The whole corpus takes 11 GB; with --delete 4 GB are enough.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from fnmatch import fnmatchcase
from pathlib import Path

from validation.corpus import program
from validation.corpus.answers import REFERENCES, answers
from validation.corpus.confirm import is_confirmed
from validation.corpus.download import fetch, fetched, read_list
from validation.corpus.outcome import (
    Difference,
    Explanation,
    Outcome,
    Result,
    explanations,
    kept_result,
    summary,
)
from validation.corpus.references.device_code import is_toolbox
from validation.corpus.references.loader import TORCH


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


def errors(wheel: Path) -> tuple[list[Difference], int]:
    """Returns the errors of `check` without a policy that no reference sees, and the number of
    errors that one confirms: not every wheel on PyPI is healthy."""
    (item,) = program.ask("check", wheel)["items"]
    found = [finding for finding in item["findings"] if finding["level"] == "error"]
    theirs = answers(wheel) if found else {}
    alone = [one for one in found if not is_confirmed(wheel, item, one, theirs)]
    return [
        Difference("check", wheel.name, one["place"] or "", one["id"], None, one["what"])
        for one in alone
    ], len(found) - len(alone)


def compared(wheel: Path) -> Result:
    """Returns the result, which is kept beside the wheel so that an interrupted run continues where
    it stopped."""
    file = wheel.with_suffix(".compared.json")
    if (kept := kept_result(wheel)) is not None:
        return kept
    alone, confirmed = errors(wheel)
    result = Result(
        program.version(), wheel.stat().st_size, confirmed, [*differences(wheel), *alone]
    )
    file.write_text(json.dumps(asdict(result), indent=1) + "\n")
    return result


def is_provider(file_name: str) -> bool:
    """True if references take a tool or libraries from this wheel of the corpus."""
    return file_name == TORCH or is_toolbox(file_name)


def results(folder: Path, names: list[str], delete: bool) -> Iterator[tuple[Path, Result]]:
    """Compares one wheel after another while the next one is downloaded. With `delete`, removes
    each one afterwards, except those that references take tools from."""
    coming = [
        w for w in read_list() if w.file_name in names and not kept_result(folder / w.file_name)
    ]
    if coming:
        for wheel in filter(lambda w: is_provider(w.file_name), read_list()):
            fetch(wheel, folder)
    missing = fetched(coming, folder)
    for name in names:
        wheel = folder / name
        if not kept_result(wheel):
            next(missing)
        yield wheel, compared(wheel)
        if delete and not is_provider(name):
            wheel.unlink(missing_ok=True)


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
    for wheel, result in results(options.folder, names, options.delete):
        outcome.count(wheel, result)
        for found in result.differences:
            why = [entry for entry in known if entry.covers(found)]
            used.update(why)
            outcome.differences[found.reference, bool(why)] += 1
            if not why:
                outcome.unexplained.append(found)
                print(f"{found.reference}: {wheel.name} {found.member}: {found.fact}")
                print(f"    theirs {found.theirs}\n    ours   {found.ours}", flush=True)
    print(outcome.table())
    stale = [entry for entry in known if entry not in used and options.wheel == "*"]
    for entry in stale:
        print(f"no longer so: {entry}")
    if options.summary:
        options.summary.write_text(
            summary(outcome, sorted(used, key=lambda e: (e.reference, e.wheel)))
        )
    sys.exit(bool(stale) or any(not explained for _, explained in outcome.differences))


if __name__ == "__main__":
    main()

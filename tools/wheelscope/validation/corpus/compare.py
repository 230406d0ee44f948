"""Compares wheelscope's answers on the corpus with those of the reference tools.

Prints each difference with the reference that disagrees, and how many there are for each.
tests/differences.toml lists the explained ones, with the evidence that wheelscope is right; any
other fails. The whole corpus takes 11 GB; with --delete 4 GB are enough.
"""

import base64
import csv
import email
import hashlib
import json
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from packaging.tags import parse_tag
from packaging.utils import parse_wheel_filename

from validation import program
from validation.corpus.download import arguments, chosen, fetch, fetched, read_list
from validation.corpus.outcome import (
    REFERENCES,
    Difference,
    Explanation,
    Outcome,
    Result,
    answers,
    explanations,
    kept_result,
    summary,
)
from validation.corpus.reference import Facts
from validation.corpus.references import platforms
from validation.corpus.references.claims import claim
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


# --- Whether another program confirms an error -----------------------------------------------------
def platform_is_newer(wheel: Path, item: Any, finding: Any, theirs: dict[str, Facts]) -> bool:  # noqa: ARG001
    """True if auditwheel names the same platform for the binaries, and the tag differs."""
    tag = theirs["auditwheel"][""]["platform_tag"]
    return bool(tag == item["platform_tag"] and tag not in wheel.name)


def tags_differ(wheel: Path, item: Any, finding: Any, theirs: dict[str, Facts]) -> bool:  # noqa: ARG001
    """True if the email parser reads other tags in WHEEL than packaging reads in the file name."""
    written = email.message_from_bytes(claim(wheel, "WHEEL")).get_all("Tag", [])
    inside = {tag for text in written for tag in parse_tag(str(text))}
    return inside != set(parse_wheel_filename(wheel.name)[3])


def record_is_wrong(wheel: Path, item: Any, finding: Any, theirs: dict[str, Facts]) -> bool:  # noqa: ARG001
    """Confirms with csv and hashlib that a file, or as many files as are counted, have no hash or a wrong one."""
    hashes = {line[0]: line[1] for line in csv.reader(claim(wheel, "RECORD").decode().splitlines())}
    if counted := re.fullmatch(r"and (\d+) more like it", finding["what"]):
        return sum(not text for text in hashes.values()) > int(counted[1])
    recorded = hashes.get(finding["place"], "")
    with zipfile.ZipFile(wheel) as members:
        digest = hashlib.sha256(members.read(finding["place"])).digest()
    return recorded != "sha256=" + base64.urlsafe_b64encode(digest).decode().rstrip("=")


def only_one_has_it(wheel: Path, item: Any, finding: Any, theirs: dict[str, Facts]) -> bool:  # noqa: ARG001
    """Confirms with csv and zipfile that RECORD lists a file that the wheel lacks, or lacks one that it holds."""
    listed = {line[0] for line in csv.reader(claim(wheel, "RECORD").decode().splitlines())}
    with zipfile.ZipFile(wheel) as members:
        held = set(members.namelist())
    found = listed - held if finding["id"] == "record-extra" else held - listed
    return finding["place"] in found


def relocates_text(wheel: Path, item: Any, finding: Any, theirs: dict[str, Facts]) -> bool:  # noqa: ARG001
    """True if readelf sees the text relocations, too."""
    if finding["what"] != "has text relocations":
        return False
    with tempfile.NamedTemporaryFile() as library, zipfile.ZipFile(wheel) as members:
        library.write(members.read(finding["place"]))
        library.flush()
        said = subprocess.run(["readelf", "-d", library.name], capture_output=True, text=True)
    return "(TEXTREL)" in said.stdout


def lacks_libraries(wheel: Path, item: Any, finding: Any, theirs: dict[str, Facts]) -> bool:  # noqa: ARG001
    """True if auditwheel misses the same libraries, and so calls the wheel plain linux."""
    missed = platforms.outside(platforms.analyse(wheel, frozenset()))
    return set(item["platform"]["external_libraries"]) <= missed


Confirm = Callable[[Path, Any, Any, dict[str, Facts]], bool]
CONFIRM: dict[str, Confirm] = {
    "tag-platform": platform_is_newer,
    "tag-mismatch": tags_differ,
    "record-hash": record_is_wrong,
    "record-extra": only_one_has_it,
    "record-unlisted": only_one_has_it,
    "hardening": relocates_text,
    "needed": lacks_libraries,
}


def is_confirmed(wheel: Path, item: Any, finding: Any, theirs: dict[str, Facts]) -> bool:
    confirm = CONFIRM.get(finding["id"])
    return confirm is not None and confirm(wheel, item, finding, theirs)


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
    parser = arguments(__doc__)
    parser.add_argument("--delete", action="store_true", help="keep no wheel that was compared")
    parser.add_argument("--summary", type=Path, help="write the result into this Markdown file")
    options = parser.parse_args()
    known = explanations()
    used: set[Explanation] = set()
    outcome = Outcome()
    names = [wheel.file_name for wheel in chosen(options)]
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

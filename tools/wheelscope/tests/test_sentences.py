"""Data decides verdicts: only the reports turn reasons into sentences, and no code reads sentences
back."""

import re
from pathlib import Path

import pytest
from program import ROOT

SOURCES = ROOT / "src"
DECIDING = ("facts", "verdicts", "loader", "machine", "findings", "answers", "commands", "index")
# Code that looks into a text written for people.
READS = re.compile(
    r"\b(reason|change|because|sentence|obstacle|what|why|notes?)\b(\.\w+\(\)|\[\w+\])*"
    r"\.(find|starts_with|ends_with|contains|compare)\("
)
COMPARES = re.compile(r'\b(reason|change|because|sentence|what)\b\s*[=!]=\s*"')
MAKES = re.compile(r"\b(reason_text|change_text|unmet_text|environment_text|fit_text)\(")


def deciding_files() -> list[Path]:
    files = [path for folder in DECIDING for path in sorted((SOURCES / folder).glob("*.cc"))]
    assert len(files) > 40
    return files


@pytest.mark.parametrize(
    "path", deciding_files(), ids=lambda path: f"{path.parent.name}/{path.name}"
)
def test_no_verdict_reads_a_sentence(path: Path) -> None:
    text = re.sub(r"//[^\n]*", "", path.read_text())
    assert not READS.search(text)
    assert not COMPARES.search(text)
    if path.parent.name != "commands":  # which print them
        assert not MAKES.search(text)


def test_the_rule_notices_what_it_forbids() -> None:
    assert READS.search('reason.find("does not say of which torch") != reason.npos')
    assert READS.search('verdict.because.front().starts_with("a file is named for")')
    assert COMPARES.search('if (nearest.change == "another torch")')


def test_reasons_are_data() -> None:
    """Each reason has its words in one place, and the file that lists the reasons has none."""
    kinds = re.findall(r"^  (\w+),", (SOURCES / "answers/reason.h").read_text(), re.MULTILINE)
    words = (SOURCES / "report/reason_text.cc").read_text()
    assert len(kinds) > 30
    assert [kind for kind in kinds if f"{{Why::{kind}," not in words] == []
    for name in ("fit", "cover"):
        text = (SOURCES / f"answers/{name}.cc").read_text()
        assert not re.search(r"\.(who|what|version|here|why) = \"[^\"]* ", text)

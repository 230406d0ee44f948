"""Data decides verdicts: only the reports turn reasons into sentences, and no code reads sentences
back."""

import re
import tomllib

from program import ROOT

SOURCES = ROOT / "src"
DECIDING = ("facts", "verdicts", "loader", "machine", "findings", "answers", "commands", "index")
# Code that looks into a text written for people, and code that makes one.
READS = re.compile(
    r"\b(reason|change|because|sentence|obstacle|what|why|notes?)\b(\.\w+\(\)|\[\w+\])*"
    r"\.(find|starts_with|ends_with|contains|compare)\("
    r'|\b(reason|change|because|sentence|what)\b\s*[=!]=\s*"'
)
MAKES = re.compile(r"\b(reason_text|change_text|unmet_text|environment_text|fit_text)\(")


def test_no_verdict_reads_a_sentence() -> None:
    files = [path for folder in DECIDING for path in (SOURCES / folder).glob("*.cc")]
    assert len(files) > 40
    for path in files:
        text = re.sub(r"//[^\n]*", "", path.read_text())
        assert not READS.search(text), path
        assert path.parent.name == "commands" or not MAKES.search(text), path  # those print them


def test_reasons_are_data() -> None:
    """Each reason has its words in one place, and the file that lists the reasons has none."""
    kinds = re.findall(r"^  (\w+),", (SOURCES / "answers/reason.h").read_text(), re.MULTILINE)
    words = (SOURCES / "report/reason_text.cc").read_text()
    assert len(kinds) > 30
    assert [kind for kind in kinds if f"{{Why::{kind}," not in words] == []
    for name in ("fit", "cover"):
        text = (SOURCES / f"answers/{name}.cc").read_text()
        assert not re.search(r"\.(who|what|version|here|why) = \"[^\"]* ", text)


def test_what_is_told_has_words() -> None:
    """Each entry of missing.toml that the code tells is there, and each is told."""
    code = "".join(path.read_text() for path in sorted(SOURCES.glob("answers/explain_*.cc")))
    calls = re.findall(r"\btell(?:_of)?\((.*?)(?:,\s+explanation|\);)", code, re.DOTALL)
    told = {key for call in calls for key in re.findall(r'"([a-z0-9-]+)"', call)}
    words = tomllib.loads((SOURCES / "data/missing.toml").read_text())
    assert told == set(words)

"""Small wheels that are built to exhaust memory: wheelscope stays within what their size justifies,
and ends with findings or as unreadable, never by a signal. No such wheel passes as healthy."""

import zipfile
from pathlib import Path
from typing import Any

import hostile
import pytest
from program import PROGRAM, ROOT, measure, run, run_json

MEBIBYTE = 1 << 20
COMMANDS = {
    "show": ["show", "{}"],
    "show as JSON": ["show", "--json", "{}"],
    "check": ["check", "{}"],
    "cover": ["cover", "--matrix", str(ROOT / "tests/matrix.toml"), "{}"],
    "link": ["link", "--json", "{}", "{}"],
    "diff": ["diff", "{}", "{}"],
    "symbols": ["dump", "--symbols", "--json", "{}"],
    "ptx": ["dump", "--ptx", "{}"],
    "thin": ["thin", "{}", "--gpu", "8.0", "-o", "{}.thin"],
    "thin --dry-run": ["thin", "--dry-run", "{}"],
    "thin --check": ["thin", "--check", "{}", "{}"],
}

# They demand much, but contain nothing false: they are read like any other, without a finding.
SOUND = {
    "archives-in-archives",  # no linker looks into an inner one
    "many-empty-archive-members",
    "many-empty-members",
    "many-fatbin-entries",
    "many-libraries",
    "many-loose-ptx-files",
    "many-members-that-inflate",
    "many-requirements",
    "marker-of-many-terms",
}
# Lies that the loader ignores too: the answer is the same as for the library without them.
HARMLESS = {
    "string-table-size-large",
    "string-table-size-most",
    "version-need-count-large",
    "version-need-count-most",
    "version-need-count-start",
}
# Found only when device code is unpacked, which `dump --ptx` does and `check` does not need to.
PACKED = {"device-code-of-a-gigabyte", "zstd-frame-of-a-gigabyte"}
# Findings about the contents of a dist-info file name it in their text.
SPOKEN_OF = {"tag-mismatch": "WHEEL", "requirement": "METADATA", "variant-label": "variant.json"}


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    if not PROGRAM.exists():
        pytest.skip("wheelscope is not built; run `make build`")
    return {path.parent.name: path for path in hostile.write(tmp_path_factory.mktemp("hostile"))}


@pytest.mark.parametrize("command", COMMANDS)
def test_memory_is_what_the_size_justifies(wheels: dict[str, Path], command: str) -> None:
    wrong = []
    for name, path in wheels.items():
        words = [word.format(path) for word in COMMANDS[command]]
        code, peak = measure(*words)
        limit = 4 * path.stat().st_size * words.count(str(path)) + 256 * MEBIBYTE
        if code not in (0, 1, 3):
            wrong.append(f"{name}: ended with {code}")
        if peak > limit:
            wrong.append(f"{name}: {peak / MEBIBYTE:.0f} MiB, {limit / MEBIBYTE:.0f} allowed")
    assert not wrong, "\n".join(wrong)


def findings(path: Path) -> list[Any]:
    (item,) = run_json("check", path, code=None)["items"]
    found: list[Any] = item["findings"]
    return found


def names_a_member(finding: Any, members: set[str]) -> bool:
    named = SPOKEN_OF.get(finding["id"])
    return finding["place"] in members or (named is not None and named in finding["what"])


def test_each_is_found_out(wheels: dict[str, Path]) -> None:
    """A finding names the member with the trap; nothing else is wrong with these wheels."""
    unseen = []
    for name in wheels.keys() - SOUND - HARMLESS - PACKED:
        with zipfile.ZipFile(wheels[name]) as opened:
            members = set(opened.namelist())
        if not any(names_a_member(finding, members) for finding in findings(wheels[name])):
            unseen.append(name)
    assert not unseen


@pytest.mark.parametrize("name", sorted(PACKED))
def test_packed_ones_are_found_out(wheels: dict[str, Path], name: str) -> None:
    done = run("dump", "--ptx", wheels[name], code=1)
    assert "error [fatbin-broken] pkg/a.so: device code claims 1073741824 bytes" in done.stderr


@pytest.mark.parametrize("name", sorted(SOUND))
def test_sound_ones_are_read(wheels: dict[str, Path], name: str) -> None:
    assert findings(wheels[name]) == []


@pytest.mark.parametrize("name", sorted(HARMLESS))
def test_harmless_lies_change_no_answer(wheels: dict[str, Path], tmp_path: Path, name: str) -> None:
    truthful = tmp_path / wheels[name].name
    truthful.write_bytes(hostile.wheel({"pkg/a.so": hostile.truthful()}))
    (expected,) = run_json("show", truthful)["items"]
    (said,) = run_json("show", wheels[name])["items"]
    for facts in (expected, said):
        del facts["file"], facts["size"]  # of the packed file
    assert said["elf"][0]["version_needs"] == {"libc.so.6": ["V_1"]}
    assert said == expected

"""Checks wheelscope with other projects' test data: wheels, ELF files and parameter lists from
their sdists.

A difference must be listed here with its reason; a listed one for a wheel or ELF file must still
exist.
"""

import importlib
import itertools
import json
import re
import subprocess
import sys
import types
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sample_wheels
from elftools.common.exceptions import ELFError, ELFParseError
from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection
from program import ROOT, Ask, scope
from sample_wheels import MACHINE
from test_packaging import ENVIRONMENT, our_name, their_fit, their_marker, their_name, their_version

from validation import pypi
from validation.corpus.reference import starts_with
from validation.corpus.references import platforms

LOCK = re.compile(r"^(\S+)==(\S+) --hash=sha256:(\w+)$", re.MULTILINE)
PEERS = {name: rest for name, *rest in LOCK.findall((ROOT / "tests/peers.lock").read_text())}


def files_of(name: str) -> Path:
    release, digest = PEERS[name]
    return pypi.sdist(name, release, digest, ROOT / "build/peers")


def wheels_of(*names: str) -> list[Path]:
    """Returns all wheels except an empty file."""
    found = [wheel for name in names for wheel in sorted(files_of(name).rglob("*.whl"))]
    return [wheel for wheel in found if zipfile.is_zipfile(wheel)]


# --- Wheels ---------------------------------------------------------------------------------------
UNKNOWN_PROCESSOR = "auditwheel leaves out files for processors that have no policy"
GIVES_UP = "auditwheel ends with an error"
PLATFORMS = {
    "testsimple-0.0.1-cp313-cp313-linux_armv5l.whl": UNKNOWN_PROCESSOR,
    "testsimple-0.0.1-cp313-cp313-linux_mips64.whl": UNKNOWN_PROCESSOR,
    "testsimple-0.0.1-cp312-cp312-linux_armv6l.whl": "the tag says armv6l; auditwheel goes by the "
    "file, whose header does not tell it from armv7l",
    "testsimple-0.0.1-cp310-cp310-linux_x86_64.whl": "nothing in it tells its C library: auditwheel "
    "ends with an error, wheelscope takes glibc",
    "no_record-1.0.0-py3-none-any.whl": GIVES_UP,
    "dirs_in_record-1.0.0-py3-none-any.whl": GIVES_UP,
    "missing_dir_in_record-1.0.0-py3-none-any.whl": GIVES_UP,
}


def test_platforms_are_those_of_auditwheel() -> None:
    found = {}
    for wheel in wheels_of("auditwheel", "repairwheel", "wheel-inspect", "check-wheel-contents"):
        (item,) = scope("show", wheel, code=None)["items"]
        theirs = platforms.ask(wheel, wheel)[""]["platform_tag"]
        foreign = re.search("-(win|macosx)", wheel.name)  # it reads only ELF files
        if item["platform_tag"] != theirs and not (foreign and theirs == "any"):
            found[wheel.name] = (item["platform_tag"], theirs)
    assert found.keys() == PLATFORMS.keys(), found


# For each rule of auditwheel's policies, code that triggers it, and the linker's arguments.
RULES = {
    "library": ("int XML_Parse(void); int f(void) { return XML_Parse(); }", ["libexpat.so.1"]),
    "symbol": ("int inflate_fast(void); int f(void) { return inflate_fast(); }", ["libz.so.1"]),
    "weak symbol": (
        "__attribute__((weak)) int zcalloc(void); int f(void) { return zcalloc(); }",
        ["libz.so.1"],
    ),
    "instructions": ("", ["-Wl,-z,x86-64-v3"]),
    "relocations": ("int g; int *f = &g;", ["-Wl,-z,pack-relative-relocs"]),
    "outside": ("int foo(void); int f(void) { return foo(); }", ["libfoo.so.1"]),
}


@pytest.mark.skipif(MACHINE != "x86_64", reason="its instruction levels are x86_64's")
@pytest.mark.parametrize("rule", RULES)
def test_each_rule_is_that_of_auditwheel(tmp_path: Path, rule: str) -> None:
    source, flags = RULES[rule]
    for number, flag in enumerate(flags):
        if flag.startswith("lib"):
            stub = [f"-Wl,-soname,{flag}", "-o", tmp_path / flag, "-xc", "-"]
            definition = re.sub("__attribute__.*?\\)\\)|; int f.*", "", source) + " { return 0; }"
            subprocess.run(["gcc", "-shared", *stub], input=definition, text=True, check=True)
            flags[number] = str(tmp_path / flag)
    wheel = tmp_path / sample_wheels.NAME.replace("manylinux_2_17", "linux")
    module = sample_wheels.library(tmp_path, source, *flags)
    wheel.write_bytes(sample_wheels.wheel(wheel.name, {"sample.so": module}))
    (item,) = scope("show", wheel)["items"]
    assert item["platform_tag"] == platforms.ask(wheel, wheel)[""]["platform_tag"]
    assert (rule in ("weak symbol", "outside")) == (item["platform_tag"] == "manylinux_2_5_x86_64")


PIP_TAKES_IT = "pip installs it: no installer reads this line strictly"
VALIDITY = {
    "bad_purelib_line-1.0.0-py3-none-any.whl": PIP_TAKES_IT,
    "empty_purelib_line-1.0.0-py3-none-any.whl": PIP_TAKES_IT,
    "no_purelib_line-1.0.0-py3-none-any.whl": PIP_TAKES_IT,
}


def test_wheels_that_are_valid() -> None:
    """wheel-inspect states it in a JSON file beside the wheel or by the folder,
    check-wheel-contents in the file's name."""
    found = {}
    for wheel in wheels_of("wheel-inspect", "check-wheel-contents"):
        said = wheel.with_suffix(".json")
        told = json.loads(said.read_text()).get("valid") if said.exists() else None
        named = re.match("bad|no_|empty_", wheel.name) or wheel.parent.name == "bad-wheels"
        valid = not named if told is None else told
        (item,) = scope("check", wheel, code=None)["items"]
        errors = [
            one["id"]
            for one in item["findings"]
            if one["level"] == "error" and re.match("record|dist-info|wheel|zip", one["id"])
        ]
        if valid == bool(errors):
            found[wheel.name] = errors
    assert found.keys() == VALIDITY.keys(), found


# --- ELF files --------------------------------------------------------------------------------------
def facts_by_pyelftools(file: Path) -> dict[str, Any]:
    with file.open("rb") as stream:
        elf = ELFFile(stream)
        facts: dict[str, Any] = {"needed": [], "soname": None, "rpath": None, "runpath": None}
        for segment in filter(lambda one: isinstance(one, DynamicSegment), elf.iter_segments()):
            for tag in segment.iter_tags():
                name = tag.entry.d_tag.removeprefix("DT_").lower()
                if name == "needed":
                    facts["needed"].append(tag.needed)
                elif name in facts:
                    facts[name] = getattr(tag, name)
        facts["version_needs"] = {
            need.name: sorted(version.name for version in versions)
            for section in elf.iter_sections()
            if isinstance(section, GNUVerNeedSection)
            for need, versions in section.iter_versions()
        }
        facts |= {"bits": elf.elfclass, "big_endian": not elf.little_endian}
    return facts


BY_SECTIONS = "pyelftools finds versions by section headers, which are stripped or wrong here"
ELF_FILES = {
    "aarch64_super_stripped.elf": BY_SECTIONS,
    "lib_with_two_dynstr_sections_reversed.so.elf": BY_SECTIONS,
    "x64_bad_sections.elf": BY_SECTIONS,
}


def test_elf_files_of_pyelftools() -> None:
    found, read = {}, 0
    for file in sorted(files_of("pyelftools").rglob("test/testfiles*/*")):
        if not file.is_file() or not starts_with(file, b"\x7fELF"):
            continue
        read += 1
        (item,) = scope("show", file, code=None)["items"]
        try:
            theirs = facts_by_pyelftools(file)
        except (ELFError, ELFParseError):
            theirs = {}  # wheelscope reads on if a table is broken
        ours = item["elf"][0]
        if differing := {k: (ours.get(k), v) for k, v in theirs.items() if ours.get(k) != v}:
            found[file.name] = differing
    assert read > 100
    assert found.keys() == ELF_FILES.keys(), found


# --- packaging's parameter lists --------------------------------------------------------------------
@pytest.fixture(scope="module")
def rows() -> Iterator[list[dict[str, Any]]]:
    """Yields every row of every parameter list, by the names of its arguments."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(files_of("packaging"))
        patch.setitem(
            sys.modules, "pretend", types.ModuleType("pretend")
        )  # only their bodies use it
        for name in [name for name in sys.modules if name.split(".")[0] == "tests"]:
            patch.delitem(sys.modules, name)
        found: list[dict[str, Any]] = []
        for name in ("version", "specifiers", "markers", "requirements", "utils"):
            module = importlib.import_module(f"tests.test_{name}")
            holders = [module, *(one for one in vars(module).values() if isinstance(one, type))]
            for function in itertools.chain(*(vars(holder).values() for holder in holders)):
                for mark in getattr(function, "pytestmark", []):
                    if mark.name != "parametrize":
                        continue
                    names = mark.args[0]
                    if isinstance(names, str):
                        names = [one.strip() for one in names.split(",")]
                    for row in mark.args[1]:
                        values = getattr(row, "values", row)
                        values = [values] if len(names) == 1 else values
                        found.append({"module": name, **dict(zip(names, values, strict=False))})
        yield found


def texts(rows: list[dict[str, Any]], module: str, *names: str) -> list[str]:
    """Returns the values of these arguments in a module's lists, without repetition."""
    values = [row[n] for row in rows if row["module"] == module for n in names if n in row]
    return list(dict.fromkeys(value for value in values if isinstance(value, str)))


BLANKS = "packaging strips whatever Python calls a blank; a header's value has none of these"
LABEL = "a sixth part that is no build number is a variant's label (PEP 817)"
NON_ASCII = "packaging takes letters beyond ASCII; PyPI does not"
PACKAGING = {
    "\u202f1.0\t\u2029\n ": BLANKS,
    "  \r \f \v v1.0\t\n": BLANKS,
    'os_name == "C:\\"': "packaging refuses a backslash, which is a letter like others here",
    'os_name == "\\x"': "the same",
    "foo_bár-1.0-py3-none-any.whl": NON_ASCII,
    "foo_bár-1.0-1000-py3-none-any.whl": NON_ASCII,
    "foo__bar-1.0-py3-none-any.whl": "packaging refuses __; installers take such old wheels",
    "foo-1.0-abc-py3-none-any.whl": LABEL,
    "foo-1.0-200-py3-none-any-junk.whl": LABEL,
    "playlyfe-0.1.1-2.7.6-none-any.whl": "a Python tag that no Python has: no installer takes it",
}


def unexplained(asked: list[tuple[str, Any, Any]]) -> list[tuple[str, Any, Any]]:
    """Returns the texts, our answers and theirs, where these differ and no reason is listed."""
    return [one for one in asked if one[1] != one[2] and one[0] not in PACKAGING]


def test_versions_and_specifiers_of_packaging(ask: Ask, rows: list[dict[str, Any]]) -> None:
    versions = texts(rows, "version", "version", "left", "right")
    versions += texts(rows, "specifiers", "version", "left", "right")
    # Python refuses to spell more digits.
    versions = [text for text in versions if len(text) <= 1000]
    assert len(versions) > 300
    spelled = [(text, ask("normalise", version=text), their_version(text)) for text in versions]
    assert not unexplained(spelled)
    pairs = {
        (row["version"], specifier)
        for row in rows
        for specifier in [row.get("spec_str") or row.get("specifier") or row.get("spec")]
        if isinstance(row.get("version"), str) and isinstance(specifier, str)
    }
    assert len(pairs) > 400
    fits = [(v, ask("fulfils", version=v, specifiers=s), their_fit(v, s)) for v, s in sorted(pairs)]
    assert not unexplained(fits)


def test_markers_of_packaging(ask: Ask, rows: list[dict[str, Any]]) -> None:
    answers = []
    for row in rows:
        marker, environment = row.get("marker_string"), ENVIRONMENT | (row.get("environment") or {})
        # Sets of extras and groups are for lock files alone.
        if isinstance(marker, str) and all(isinstance(one, str) for one in environment.values()):
            ours = ask("marker", marker=marker, environment=environment)
            answers.append((marker, ours, their_marker(marker, environment)))
    assert len(answers) > 50
    assert not unexplained(answers)


def test_names_of_packaging(ask: Ask, rows: list[dict[str, Any]]) -> None:
    names = [text for text in texts(rows, "utils", "filename") if text.endswith(".whl")]
    assert not unexplained([(text, our_name(ask, text), their_name(text)) for text in names])

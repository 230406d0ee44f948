"""Versions, specifiers, markers, requirements, wheel names and tags agree with `packaging`, and METADATA
with the email parser, on generated cases."""

import email
from collections.abc import Callable
from typing import Any

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from packaging import tags
from packaging.markers import InvalidMarker, Marker, UndefinedComparison
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version
from program import Ask


def unless_refused(call: Callable[[], Any]) -> Any:
    """Returns the value; None if `packaging` refuses the text."""
    try:
        return call()
    except (InvalidVersion, InvalidSpecifier, InvalidMarker, InvalidWheelFilename):
        return None


def their_version(text: str) -> str | None:
    return unless_refused(lambda: str(Version(text)))


def their_fit(version: str, specifiers: str) -> bool | None:
    return unless_refused(lambda: SpecifierSet(specifiers).contains(version, prereleases=True))


# --- Versions, in every spelling that the specification takes -------------------------------------
numbers = st.integers(0, 30).map(str) | st.sampled_from(["00", "010", "2026"])
separators = st.sampled_from(["", ".", "-", "_"])
letters = st.sampled_from(["a", "b", "rc", "c", "alpha", "beta", "pre", "preview", "A", "RC"])


@st.composite
def versions(draw: st.DrawFn, local: bool = True) -> str:
    text = draw(st.sampled_from(["", "v", "V", "1!", "0!"]))
    text += ".".join(draw(st.lists(numbers, min_size=1, max_size=4)))
    if draw(st.booleans()):
        text += draw(separators) + draw(letters) + draw(separators) + draw(numbers | st.just(""))
    if draw(st.booleans()):
        post = draw(st.sampled_from(["post", "rev", "r", "POST"]))
        text += draw(
            st.just("-" + draw(numbers)) | st.just(draw(separators) + post + draw(numbers))
        )
    if draw(st.booleans()):
        text += draw(separators) + "dev" + draw(numbers | st.just(""))
    if local and draw(st.integers(0, 3)) == 0:
        text += "+" + draw(st.sampled_from(["cu130", "1", "cpu.2", "ubuntu-1", "A_b", "01"]))
    return text


near_versions = versions() | st.text(alphabet="0123456789.abrcdevpost!+-_* v", max_size=12)


@settings(deadline=None)
@given(near_versions)
def test_spelling_of_a_version(ask: Ask, text: str) -> None:
    assert ask("normalise", version=text) == their_version(text)


@settings(deadline=None)
@given(versions(), versions())
@example("1.0.dev0", "1.0a1")
@example("1.0", "1.0.0")
@example("1.0+local.10", "1.0+local.9")
def test_order_of_versions(ask: Ask, a: str, b: str) -> None:
    x, y = Version(a), Version(b)
    assert ask("compare", a=a, b=b) == (x > y) - (x < y)


# --- Specifiers ---------------------------------------------------------------------------------
signs = st.sampled_from(["==", "!=", "<=", ">=", "<", ">", "~=", "==="])


@st.composite
def specifiers(draw: st.DrawFn) -> str:
    clauses = []
    for _ in range(draw(st.integers(1, 3))):
        sign = draw(signs)
        bound = draw(versions(local=sign in ("==", "!=")))
        if sign in ("==", "!=") and draw(st.booleans()):
            bound = ".".join(draw(st.lists(numbers, min_size=1, max_size=3))) + ".*"
        clauses.append(sign + draw(st.sampled_from(["", " "])) + bound)
    return draw(st.sampled_from([",", ", ", " ,"])).join(clauses)


@settings(deadline=None, max_examples=200)
@given(versions(), specifiers() | st.text(alphabet="=<>!~ ,.*0123456789ab", max_size=14))
@example("1.0", "====1")
@example("1.0", "==1a1.*")
@example("1.0", "===a b")
@example("2.14.1", "==2.14")
@example("2.15.0+cu130", "==2.15.0")
@example("3.0rc1", "<3.0")
@example("1.7.post1", ">1.7")
@example("1.7+local", ">1.7")
@example("2.2.0", "~=2.2.post3")
@example("1.4.5a4", "~=1.4.5a4")
@example("2!1.0", "==2!1.*")
@example("0a0", "<0-0")
@example("1.0.post1+local", ">1.0.post1")
@example("1.0.dev1+local", ">1.0.dev1")
@example("1.0a1.post1", ">1.0a1")
@example("V1.0", "===v1.0")
@example("1.0-rc1", "===1.0rc1")
def test_version_fulfils_specifiers(ask: Ask, version: str, specifier: str) -> None:
    expected = their_fit(version, specifier)
    assert ask("fulfils", version=version, specifiers=specifier) == expected


# --- Markers ------------------------------------------------------------------------------------
ENVIRONMENT = {
    "implementation_name": "cpython",
    "implementation_version": "3.13.1",
    "os_name": "posix",
    "platform_machine": "x86_64",
    "platform_release": "6.1.0-18-amd64",
    "platform_system": "Linux",
    "platform_version": "#1 SMP",
    "python_full_version": "3.13.1",
    "platform_python_implementation": "CPython",
    "python_version": "3.13",
    "sys_platform": "linux",
    "extra": "cuda",
}
literals = st.sampled_from(
    [
        *("3.13", "3.9", "3.13.1", "3.14.0rc1", "3.*", "2", "3.12, 3.13", "", "x86_64 aarch64"),
        *("3.12,>3", "6.1.0-18-amd64", "3.13.1 ", "a b"),
        *("linux", "win32", "posix", "x86_64", "Linux", "cuda", "CUDA", "test", "cpython"),
    ]
)
marker_signs = st.sampled_from(["==", "!=", "<", "<=", ">", ">=", "~=", "===", "in", "not in"])
variables = st.sampled_from([*ENVIRONMENT, "python_version", "extra", "sys_platform"])


@st.composite
def comparisons(draw: st.DrawFn) -> str:
    quote = draw(st.sampled_from("'\""))
    sides = [draw(variables), quote + draw(literals) + quote]
    if draw(st.integers(0, 4)) == 0:
        sides.reverse()
    sign = draw(marker_signs)
    gap = " " if sign.isalpha() or " " in sign else draw(st.sampled_from(["", " "]))
    return gap.join([sides[0], sign, sides[1]])


markers = st.recursive(
    comparisons(),
    lambda inner: (
        st.tuples(inner, st.sampled_from([" and ", " or "]), inner).map("".join)
        | inner.map(lambda text: f"({text})")
    ),
    max_leaves=5,
)


def their_marker(text: str, environment: dict[str, str]) -> bool | None:
    try:
        return unless_refused(lambda: Marker(text).evaluate(environment))
    except UndefinedComparison:
        return None


@settings(deadline=None)
@given(markers)
@example('python_version < "3.9" or python_version >= "3.13" and extra == "cuda"')
@example('(python_version < "3.9" or python_version >= "3.13") and extra == "x"')
@example('"linux" in sys_platform')
@example("platform_machine not in 'x86_64 aarch64'")
@example('platform_release >= "5.0"')
@example("'3.13'===implementation_name")
@example("python_version === '3.13'")
@example("python_version == '3.13,>3'")
@example("platform_release === '6.1.0-18-AMD64'")
def test_marker(ask: Ask, marker: str) -> None:
    expected = their_marker(marker, ENVIRONMENT)
    # Other terms may still decide what packaging gives up on.
    assume(expected is not None or (" and " not in marker and " or " not in marker))
    assert ask("marker", marker=marker, environment=ENVIRONMENT) == expected


# --- Requirements -------------------------------------------------------------------------------
@st.composite
def requirements(draw: st.DrawFn) -> str:
    text = draw(st.sampled_from(["torch", "nvidia-cublas-cu12", "Jinja2", "a.b_c", "x"]))
    extras = draw(st.lists(st.sampled_from(["cuda", "test", "a-b"]), max_size=2))
    if extras:
        text += draw(st.sampled_from(["", " "])) + "[" + ", ".join(extras) + "]"
    kind = draw(st.sampled_from(["none", "bare", "parenthesised", "url"]))
    if kind == "bare":
        text += draw(st.sampled_from(["", " "])) + draw(specifiers())
    elif kind == "parenthesised":
        text += " (" + draw(specifiers()) + ")"
    elif kind == "url":
        text += " @ file:///a/b-1.0.tar.gz"
    if draw(st.booleans()):
        text += (" ; " if kind == "url" else draw(st.sampled_from([";", " ; "]))) + draw(markers)
    return text


@settings(deadline=None)
@given(requirements())
def test_requirement(ask: Ask, text: str) -> None:
    try:
        expected = Requirement(text)
    except InvalidRequirement:
        assume(False)
    found = ask("requirement", text=text)
    assert found["name"] == canonicalize_name(expected.name)
    assert set(found["extras"]) == expected.extras
    assert found["url"] == (expected.url or "")
    if "===" not in text:
        assert SpecifierSet(found["specifiers"]) == expected.specifier
    assert (Marker(found["marker"]) if found["marker"] else None) == expected.marker


# --- Names and tags -----------------------------------------------------------------------------
ARCHITECTURES = ["x86_64", "aarch64", "i686", "armv7l", "ppc64le", "s390x", "riscv64"]
platform_tags = st.sampled_from(
    ["any", "win_amd64", "win32", "macosx_11_0_arm64", "linux_x86_64", "pyemscripten_2026_0_wasm32"]
    + [f"{tag}_{arch}" for arch in ARCHITECTURES for tag in ("manylinux_2_28", "musllinux_1_2")]
    + ["manylinux2014_x86_64", "manylinux1_i686"]
)
python_tags = st.sampled_from(
    ["py3", "py2", "py39", "py313", "cp38", "cp39", "cp310", "cp313", "cp314", "cp315", "pp311"]
)
abi_tags = st.sampled_from(
    ["none", "abi3", "abi3t", "cp313", "cp313t", "cp314", "cp315t", "cp38", "pypy311_pp73"]
)


def compressed(one: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(one, min_size=1, max_size=3, unique=True).map(".".join)


@st.composite
def wheel_names(draw: st.DrawFn) -> str:
    name = draw(st.sampled_from(["torch", "nvidia_cublas_cu12", "MarkupSafe", "a.b"]))
    build = draw(st.sampled_from(["", "", "-1", "-22982", "-2local", "-0001"]))
    parts = [compressed(python_tags), compressed(abi_tags), compressed(platform_tags)]
    version = str(Version(draw(versions())))
    return f"{name}-{version}{build}-{'-'.join(draw(part) for part in parts)}.whl"


def their_name(file_name: str) -> Any:
    found = unless_refused(lambda: parse_wheel_filename(file_name))
    return found and (*found[:2], {str(tag) for tag in found[3]})


def our_name(ask: Ask, file_name: str) -> Any:
    found = ask("wheel_name", file=file_name)
    return found and (
        canonicalize_name(found["name"]),
        Version(found["version"]),
        set(found["tags"]),
    )


@settings(deadline=None)
@given(wheel_names())
def test_wheel_name(ask: Ask, file_name: str) -> None:
    assert our_name(ask, file_name) == their_name(file_name)
    build = parse_wheel_filename(file_name)[2]
    assert ask("wheel_name", file=file_name)["build"] == (file_name.split("-")[2] if build else "")


@settings(deadline=None)
@given(st.text(alphabet="ab1.-_w", max_size=12).map(lambda stem: stem + ".whl"))
@example("x-1.0-py3--any.whl")
@example("a b-1.0-py3-none-any.whl")
@example("x-1.0-py3-none-any..linux.whl")
@example("torch-2.0-cp311-cp311.whl")
@example("torch-cp311-cp311-any.whl")
@example("a-1-b-py3-none-any.whl")
def test_what_is_no_wheel_name(ask: Ask, file_name: str) -> None:
    # A sixth part that is not a build number is a variant's label, which packaging does not know.
    if not their_name(file_name) and file_name.count("-") not in (5, 6):
        assert ask("wheel_name", file=file_name) is None


@settings(deadline=None)
@given(python_tags, abi_tags, st.sampled_from(["3.9", "3.13", "3.14", "3.15"]), st.booleans())
@example("cp315", "abi3t", "3.15", False)
@example("cp315", "abi3", "3.15", True)
@example("cp313", "none", "3.14", False)
def test_python_takes_a_tag(
    ask: Ask, python: str, abi: str, version: str, free_threaded: bool
) -> None:
    assume(not (free_threaded and version == "3.9"))
    numbers = [int(part) for part in version.split(".")]
    interpreter = "cp" + "".join(map(str, numbers))
    own_abi = interpreter + ("t" if free_threaded else "")
    taken = {
        *tags.cpython_tags(numbers, abis=[own_abi], platforms=["linux_x86_64"]),
        *tags.compatible_tags(numbers, interpreter=interpreter, platforms=["linux_x86_64"]),
    }
    for platform in ("any", "linux_x86_64"):
        tag = f"{python}-{abi}-{platform}"
        if platform == "any" and abi != "none":
            continue  # no installer's list has one
        expected = tags.Tag(python, abi, platform) in taken
        found = ask("admits", tag=tag, python=version + ("t" if free_threaded else ""))
        assert found == expected, tag


GLIBC = {"manylinux1": 5, "manylinux2010": 12, "manylinux2014": 17}
GLIBC |= {f"manylinux_2_{minor}": minor for minor in range(5, 45)}


@settings(deadline=None)
@given(st.sampled_from(sorted(GLIBC)), st.sampled_from(sorted(GLIBC)))
def test_which_platform_is_older(ask: Ask, a: str, b: str) -> None:
    """The glibc of each tag is PEP 600's, which packaging has only for the machine it runs on."""
    expected = GLIBC[a] < GLIBC[b]
    assert ask("promises_more", a=f"{a}_x86_64", b=f"{b}_x86_64") == expected


# --- METADATA -----------------------------------------------------------------------------------
lines = st.sampled_from(
    [
        *("Name: pkg", "Version: 1.0", "Requires-Dist: torch==2.14.1", "requires-dist:numpy"),
        *("Summary:", "Summary: a: b", "Description: x", "Keywords : x", "Requires-Python: >=3.10"),
        *(" folded", "\tfolded", " ", "\t", "        ", "", " ; extra == 'x'", "  a: b"),
        *("no header", ": no name", "Ä: ö"),
    ]
)


def unfolded(value: str) -> str:
    return " ".join(value.split())


@settings(deadline=None)
@given(st.lists(lines, max_size=12), st.sampled_from(["\n", "\r\n"]))
@example(["Summary: x", " ", " y", "Requires-Dist: torch"], "\n")
@example(["Name: pkg", "        ", "Requires-Dist: torch"], "\n")
def test_headers(ask: Ask, text: list[str], end: str) -> None:
    whole = end.join(text) + end
    message = email.message_from_string(whole)
    expected = [[key, unfolded(str(value))] for key, value in message.items()]
    found = [[key, unfolded(value)] for key, value in ask("headers", text=whole)]
    assert found == expected

"""Wheel names and tags agree with `packaging`, and METADATA with the email parser, on generated
cases."""

import email

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from packaging import tags
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version
from program import Ask
from test_packaging import versions

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


@settings(deadline=None)
@given(wheel_names())
def test_wheel_name(ask: Ask, file_name: str) -> None:
    name, version, build, expected = parse_wheel_filename(file_name)
    found = ask("wheel_name", file=file_name)
    assert canonicalize_name(found["name"]) == name
    assert Version(found["version"]) == version
    parts = file_name.split("-")
    assert found["build"] == (parts[2] if build else "")
    assert set(found["tags"]) == {str(tag) for tag in expected}


@settings(deadline=None)
@given(st.text(alphabet="ab1.-_w", max_size=12).map(lambda stem: stem + ".whl"))
@example("torch-2.0-cp311-cp311.whl")
@example("torch-cp311-cp311-any.whl")
@example("a-1-b-py3-none-any.whl")
def test_what_is_no_wheel_name(ask: Ask, file_name: str) -> None:
    try:
        parse_wheel_filename(file_name)
    except (InvalidWheelFilename, InvalidVersion):
        found = ask("wheel_name", file=file_name)
        # A sixth part that is not a build number is a variant's label, which packaging does not
        # know.
        assert found is None or file_name.count("-") in (5, 6)


@settings(deadline=None)
@given(
    python_tags,
    abi_tags,
    st.sampled_from(["3.9", "3.13", "3.14", "3.15"]),
    st.booleans(),
)
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

"""Conventions that people expect of any command line, of one that stands beside pip and uv, and of
its wheel."""

import platform
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import sample_wheels
from package_index import Index
from program import PROGRAM, ROOT, Fit, run, scope
from sample_wheels import MACHINE, NAME, PYTHON

COMMANDS = [
    "show",
    "check",
    "cover",
    "link",
    "diff",
    "dump",
    "machine",
    "explain",
    "fit",
    "env",
    "thin",
]


def test_the_version_has_a_short_option() -> None:
    assert run("-V").stdout == run("--version").stdout
    assert run("-V").stdout.startswith("wheelscope ")


@pytest.mark.parametrize("words", [["--help"], ["man"], ["explain", "Illegal instruction"]])
def test_a_full_disk_is_an_error(words: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([PROGRAM, *words], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 3
    assert "the output could not be written" in done.stderr


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_fits_one_screen(command: str) -> None:
    text = run(*command.split(), "--help").stdout
    assert len(text.splitlines()) <= 36
    assert text.count("wheelscope " + command) >= 2, "usage and an example"
    assert command == "" or all(
        f"wheelscope {other} " not in text for other in COMMANDS if other != command
    )


# --- What fit takes from the configuration of pip and uv, and from files of requirements -------------
CONFIGURED = [
    ({"PIP_INDEX_URL": "{index}"}, "", ""),
    ({"UV_INDEX_URL": "{index}"}, "", ""),
    ({"UV_DEFAULT_INDEX": "{index}"}, "", ""),
    ({"UV_INDEX": "mine={index}", "UV_INDEX_URL": "http://127.0.0.1:9/simple/"}, "", ""),
    ({}, ".config/pip/pip.conf", "[global]\nindex-url = {index}\n"),
    ({}, ".config/uv/uv.toml", 'index-url = "{index}"\n'),
    (
        {"UV_CONFIG_FILE": "{home}/uv.toml"},
        "uv.toml",
        '[[index]]\nurl = "{index}"\ndefault = true\n',
    ),
]


@pytest.mark.parametrize(("variables", "file", "text"), CONFIGURED)
def test_index_of_pip_and_uv(
    bare_fit: Fit, index: Index, tmp_path: Path, variables: dict[str, str], file: str, text: str
) -> None:
    index.offer("sample-1.0-py3-none-any.whl", {"sample.py": b""})
    places = {"index": index.simple, "home": tmp_path}
    if file:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text.format(**places))
    [answer], _, _ = bare_fit("sample", **{k: v.format(**places) for k, v in variables.items()})
    assert answer["take"] == "sample-1.0-py3-none-any.whl"


@pytest.fixture
def folder(tmp_path: Path, module: bytes) -> Path:
    """Makes a folder, with a blank in its name, with the sample in two versions, one a
    pre-release."""
    place = tmp_path / "my files"
    place.mkdir()
    newer = f"sample-2.0rc1-{PYTHON}-{PYTHON}-manylinux_2_17_{MACHINE}.whl"
    for name in (NAME, newer):
        (place / name).write_bytes(sample_wheels.wheel(name, {"sample.so": module}))
    return place


def test_find_links_and_no_index(bare_fit: Fit, folder: Path) -> None:
    [answer], code, _ = bare_fit("sample", "--no-index", "-f", folder)
    assert (answer["take"], code) == (NAME, 0)
    words = shlex.split(answer["command"])
    assert words[-3:] == ["--find-links", str(folder), "--no-index"]
    [answer], _, _ = bare_fit("sample", "--no-index", "--find-links", folder, "--pre")
    assert answer["take"].startswith("sample-2.0rc1")
    assert answer["command"].endswith(" --pre")
    [answer], _, _ = bare_fit("sample", PIP_NO_INDEX="1", PIP_FIND_LINKS=folder.as_uri())
    assert answer["take"] == NAME
    _, code, errors = bare_fit("sample", "--no-index")
    assert code == 3
    assert "--find-links" in errors


def test_a_damaged_wheel_in_a_folder_is_not_taken(bare_fit: Fit, folder: Path) -> None:
    (folder / NAME).write_bytes(b"PK")
    [answer], code, errors = bare_fit("sample", "--no-index", "-f", folder)
    assert (answer["take"], code) == (None, 3)
    assert NAME in errors


def test_requirement_files(bare_fit: Fit, folder: Path, tmp_path: Path) -> None:
    inner, outer = tmp_path / "inner.txt", tmp_path / "outer.txt"
    inner.write_text("# a comment\nsample \\\n  ==1.0  # the one\n-e .\n")
    outer.write_text(f"--no-index\n--find-links='{folder}'\n-r inner.txt\n")
    [answer], code, errors = bare_fit("-r", outer)
    assert (answer["take"], code) == (NAME, 0)
    assert "'-e .' is not judged" in errors
    assert "absent.txt" in run("fit", "-r", tmp_path / "absent.txt", code=3).stderr
    run("fit", code=2)


@pytest.fixture
def sounds(index: Index) -> Index:
    """Offers two versions of a project, and one of another that requires it."""
    for name in ("sound-1.0", "sound-2.0"):
        index.offer(f"{name}-py3-none-any.whl", {"sound.py": b""})
    index.offer("user-1.0-py3-none-any.whl", {"user.py": b""}, "Requires-Dist: sound\n")
    return index


SOUND = "sound-1.0-py3-none-any.whl"
SYNTAX = [
    b"sound \\\r\n  ==1.0\r\n",
    b"\xef\xbb\xbfsound==1.0\n",
    b"sound==1.0\t# a comment\n",
    b"sound==1.0 --config-settings='a=b'\n",
    b"sound==${NUMBER}\n",
    b"-rother.txt\n",
    b"-r\tother.txt\n",
    b"-r 'other.txt'\n",
    b"-c other.txt\nsound\n",
    b"--constraint=other.txt\nsound",
    b"sound; sys_platform == 'win32'\nsound==1.0; sys_platform == 'linux'\n",
]


@pytest.mark.usefixtures("sounds")
@pytest.mark.parametrize("text", SYNTAX, ids=str)
def test_syntax_of_requirement_files(fit: Fit, tmp_path: Path, text: bytes) -> None:
    (tmp_path / "other.txt").write_text("sound==1.0\n")
    (tmp_path / "requirements.txt").write_bytes(text)
    [answer], code, errors = fit("-r", tmp_path / "requirements.txt", NUMBER="1.0")
    assert (answer["take"], code) == (SOUND, 0), errors


@pytest.mark.usefixtures("sounds")
@pytest.mark.parametrize("way", ["-c", "PIP_CONSTRAINT", "UV_CONSTRAINT"])
def test_constraints(fit: Fit, tmp_path: Path, way: str) -> None:
    file = tmp_path / "constraints.txt"
    file.write_text("sound<2; python_version > '3'\nsound<1; python_version < '3'\nabsent<3\n")
    words, variables = ([way, file], {}) if way == "-c" else ([], {way: str(file)})
    [answer], code, _ = fit("sound", *words, **variables)
    assert (answer["take"], code) == (SOUND, 0)
    answer, code, _ = fit("user", "--format=set", *words, **variables)
    assert [one["version"] for one in answer["packages"]] == ["1.0", "1.0"]
    assert (f"--constraint {file}" in answer["command"]) == (way == "-c")
    file.unlink()
    assert str(file) in run("fit", "sound", "-c", file, code=3).stderr


@pytest.mark.usefixtures("sounds")
def test_markers_of_what_is_asked_for(fit: Fit) -> None:
    answers, code, errors = fit("sound; sys_platform == 'win32'")
    assert (answers, code) == ([], 0)
    assert "its marker does not hold here" in errors


def test_a_requirement_with_an_address_is_that_file(fit: Fit, sounds: Index) -> None:
    address = sounds.address(SOUND)
    [answer], code, _ = fit(f"sound @ {address}")
    assert (answer["take"], code) == (SOUND, 0)
    assert f"sound @ {address}" in shlex.split(answer["command"])
    for asked, complaint in (
        (f"other @ {address}", "another project"),
        ("sound @ git+https://example.invalid/sound.git", "names no wheel"),
    ):
        [answer], code, errors = fit(asked)
        assert (answer["take"], code) == (None, 3)
        assert complaint in errors


@pytest.mark.parametrize("asked", ["./", "../sample", "git+https://example.invalid/sample.git"])
def test_paths_and_repositories_are_not_asked_of_an_index(
    fit: Fit, index: Index, asked: str
) -> None:
    _, code, errors = fit(asked)
    assert code == 3
    assert f"'{asked}' is no requirement, wheel or address" in errors
    assert not index.asked


def test_a_wheel_by_its_file_address(bare_fit: Fit, folder: Path) -> None:
    for asked in ((folder / NAME).as_uri(), f"sample @ {(folder / NAME).as_uri()}#sha256=0"):
        [answer], code, errors = bare_fit(asked)
        assert code == 0, errors
        assert Path(answer["take"]).name == NAME
    [answer], _, _ = bare_fit("sample", "--no-index", "-f", folder / NAME)
    assert answer["take"] == NAME


@pytest.mark.parametrize(("variable", "value"), [("PIP_PRE", "1"), ("UV_PRERELEASE", "allow")])
def test_prereleases_as_configured(fit: Fit, sounds: Index, variable: str, value: str) -> None:
    sounds.offer("sound-3.0rc1-py3-none-any.whl", {"sound.py": b""})
    [answer], _, _ = fit("sound", **{variable: value})
    assert answer["take"].startswith("sound-3.0rc1")


@pytest.mark.parametrize("option", ["--gpu", "--driver", "--cuda"])
def test_a_value_that_is_no_version(option: str) -> None:
    assert option in run("fit", "sample", option, "rapid", code=2).stderr


def test_the_command_for_a_set_has_extras_and_files(fit: Fit, sounds: Index) -> None:
    address = sounds.address(SOUND)
    answer, _, _ = fit("user[fast]", address)
    assert shlex.split(answer["command"])[-4:-2] == ["user[fast]==1.0", address]


def test_a_folder_of_an_environment_is_no_program(index: Index, module: bytes) -> None:
    index.offer(NAME, {"sample.so": module})
    done = run("fit", "--python", sys.prefix, "-i", index.simple, "sample")
    command = next(line for line in done.stdout.splitlines() if " -m pip install " in line)
    program = Path(command.split(" -m pip")[0].split()[-1])
    assert program.is_file(), command


# --- Shells complete what the program has, and the manual page names it -----------------------------
def commands() -> list[str]:
    page = run("--help").stdout
    listed = page.partition("SUBCOMMANDS:")[2] or page.partition("Subcommands:")[2]
    return re.findall(r"^  (\w+) ", listed.partition("Examples:")[0], re.MULTILINE)


def completed(*words: str) -> list[str]:
    """Returns what bash offers for the last word."""
    script = (
        run("completions", "bash").stdout
        + f"COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}\n"
        + '_wheelscope; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_bash_completes_commands_and_options() -> None:
    assert completed("wheelscope", "ex") == ["explain"]
    assert "fit" in completed("wheelscope", "''")
    assert completed("wheelscope", "fit", "--de") == ["--deep"]
    assert completed("wheelscope", "dump", "--pt") == ["--ptx"]


@pytest.mark.parametrize(("shell", "check"), [("zsh", "-n"), ("fish", "--no-execute")])
def test_other_shells_take_their_script(shell: str, check: str) -> None:
    script = run("completions", shell).stdout
    assert all(command in script for command in commands())
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    subprocess.run([shell, check], input=script, text=True, check=True)


def test_the_manual_names_every_command() -> None:
    page = run("man").stdout
    assert len(commands()) > 8
    for command in commands():
        assert f".SS {command}\n" in page
        assert "\\-\\-json" in page
    if shutil.which("groff"):
        words = ["groff", "-man", "-ww", "-z"]
        done = subprocess.run(words, input=page, capture_output=True, text=True, check=True)
        assert not done.stderr


def test_an_unknown_shell_is_refused() -> None:
    assert "fish" in run("completions", "tcsh", code=2).stderr


# --- The wheel: sound by its own judgement, and complete ---------------------------------------------
TAGS = ("manylinux2014", "manylinux_2_17", "musllinux_1_1")
SHARED = {
    "bin/wheelscope",
    "share/man/man1/wheelscope.1",
    "share/bash-completion/completions/wheelscope",
    "share/zsh/site-functions/_wheelscope",
    "share/fish/vendor_completions.d/wheelscope.fish",
}


@pytest.mark.skipif("build/bin" not in str(PROGRAM), reason="is built as `make build` builds")
def test_the_wheel_is_sound_and_complete(tmp_path: Path) -> None:
    """One test, because two simultaneous builds would disturb each other."""
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    folder = f"--config-settings=build-dir={ROOT / 'build/wheelscope'}"
    subprocess.run([*build, folder, "--wheel-dir", tmp_path, ROOT], check=True)
    (wheel,) = tmp_path.iterdir()
    names = ".".join(f"{tag}_{platform.machine()}" for tag in TAGS)
    assert wheel.name.endswith(f"-py3-none-{names}.whl")
    assert scope("check", "--policy", ROOT / "policy.toml", wheel)["items"][0]["findings"] == []
    with zipfile.ZipFile(wheel) as archive:
        members = {name.partition(".data/data/")[2]: name for name in archive.namelist()}
        assert members.keys() >= SHARED
        assert archive.read(members["share/man/man1/wheelscope.1"]).startswith(b".TH")

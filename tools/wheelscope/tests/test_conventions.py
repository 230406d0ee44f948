"""Conventions that people expect of any command line, and of one that stands beside pip and uv."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import sample_wheels
from package_index import Index
from program import PROGRAM, Fit, run
from sample_wheels import MACHINE, NAME, PYTHON

pytestmark = pytest.mark.usefixtures("scope")
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


def test_find_links_and_no_index(fit: Fit, folder: Path) -> None:
    [answer], code, _ = fit("sample", "--no-index", "-f", folder)
    assert (answer["take"], code) == (NAME, 0)
    words = shlex.split(answer["command"])
    assert words[-3:] == ["--find-links", str(folder), "--no-index"]
    [answer], _, _ = fit("sample", "--no-index", "--find-links", folder, "--pre")
    assert answer["take"].startswith("sample-2.0rc1")
    assert answer["command"].endswith(" --pre")
    [answer], _, _ = fit("sample", PIP_NO_INDEX="1", PIP_FIND_LINKS=folder.as_uri())
    assert answer["take"] == NAME


def test_no_index_alone_has_nothing_to_look_in(fit: Fit) -> None:
    _, code, errors = fit("sample", "--no-index")
    assert code == 3
    assert "--find-links" in errors


def test_requirement_files(fit: Fit, folder: Path, tmp_path: Path) -> None:
    inner, outer = tmp_path / "inner.txt", tmp_path / "outer.txt"
    inner.write_text("# a comment\nsample \\\n  ==1.0  # the one\n-e .\n")
    outer.write_text(f"--no-index\n--find-links='{folder}'\n-r inner.txt\n")
    [answer], code, errors = fit("-r", outer)
    assert (answer["take"], code) == (NAME, 0)
    assert "'-e .' is not judged" in errors
    assert "absent.txt" in run("fit", "-r", tmp_path / "absent.txt", code=3).stderr
    run("fit", code=2)


def test_uv_settings(fit: Fit, index: Index, module: bytes, tmp_path: Path) -> None:
    index.offer(NAME, {"sample.so": module})
    closed = "http://127.0.0.1:9/simple/"
    [answer], _, _ = fit("sample", UV_DEFAULT_INDEX=index.simple)
    assert answer["take"] == NAME
    [answer], _, _ = fit("sample", UV_INDEX=f"mine={index.simple}", UV_INDEX_URL=closed)
    assert answer["take"] == NAME
    settings = tmp_path / "uv.toml"
    settings.write_text(f'[[index]]\nname = "mine"\nurl = "{index.simple}"\ndefault = true\n')
    [answer], _, _ = fit("sample", UV_CONFIG_FILE=str(settings))
    assert answer["take"] == NAME


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

"""Shells complete what the program has, and the manual page names it."""

import re
import shutil
import subprocess

import pytest
from program import PROGRAM

pytestmark = pytest.mark.usefixtures("scope")


def output(*words: str) -> str:
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True, check=True).stdout


def commands() -> list[str]:
    listed = (
        output("--help").partition("SUBCOMMANDS:")[2]
        or output("--help").partition("Subcommands:")[2]
    )
    return re.findall(r"^  (\w+) ", listed.partition("Examples:")[0], re.MULTILINE)


def completed(*words: str) -> list[str]:
    """What bash offers for the last word."""
    script = (
        output("completions", "bash")
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
    script = output("completions", shell)
    assert all(command in script for command in commands())
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    subprocess.run([shell, check], input=script, text=True, check=True)


def test_the_manual_names_every_command() -> None:
    page = output("man")
    assert len(commands()) > 8
    for command in commands():
        assert f".SS {command}\n" in page
        assert "\\-\\-json" in page
    if shutil.which("groff"):
        words = ["groff", "-man", "-ww", "-z"]
        done = subprocess.run(words, input=page, capture_output=True, text=True, check=True)
        assert not done.stderr


def test_an_unknown_shell_is_refused() -> None:
    done = subprocess.run([PROGRAM, "completions", "tcsh"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "fish" in done.stderr

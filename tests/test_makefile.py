"""Tests what the Makefile itself prints, and the environment that it gives its commands."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def test_report_says_where_the_page_is_without_a_display():
    without = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY")}
    command = ["make", "--silent", "report", "--old-file=tools", "--old-file=wheelscope"]
    done = subprocess.run(
        [*command, "WHEELYARD=true", f"PYTHON={sys.executable}"],
        cwd=ROOT,
        env=without,
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"open file://{ROOT}/build/release/report.html" in done.stdout


def test_settings_of_the_shell_do_not_reach_the_environment():
    """`PIP_USER=1` makes pip refuse to install; in a git hook, tests would commit into this repository."""
    probe = (
        "probe:\n\t@echo $$PIP_USER $${PYTHONPATH-none} $${GIT_DIR-none} $${GIT_INDEX_FILE-none}"
    )
    theirs = dict.fromkeys(("PYTHONPATH", "GIT_DIR", "GIT_INDEX_FILE"), "/theirs")
    command = ["make", "--silent", f"--eval={probe}", "probe"]
    said = subprocess.check_output(
        command, cwd=ROOT, env=os.environ | theirs | {"PIP_USER": "1"}, text=True
    )
    assert said == "0 none none none\n"


@pytest.mark.parametrize(
    ("target", "said"), [("new", "give the name"), ("tag", "give the version")]
)
def test_what_is_missing_is_said_before_anything_is_made(target: str, said: str):
    command = ["make", "--dry-run", "--always-make", target]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stdout == ""


def test_help_whose_reader_leaves():
    for _ in range(5):
        done = subprocess.run(
            ["bash", "-c", "set -o pipefail; make help | true"],
            cwd=ROOT, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr

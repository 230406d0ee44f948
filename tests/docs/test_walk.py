"""Every command of the pages that can run in a test is run, and prints what the page says."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest
from walk import ROOT, Block, blocks, matches

PAGES = ["README.md", "CONTRIBUTING.md", "RELEASE.md", "SECURITY.md", "ci/README.md"]
PAGES += sorted(str(page.relative_to(ROOT)) for page in (ROOT / "docs").rglob("*.md"))
BLOCKS = [block for page in PAGES for block in blocks(page)]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the quotes are of x86_64")
@pytest.mark.skipif(
    not (ROOT / "build/bin/wheelscope").is_file() or not list(ROOT.glob("cuda_ext_example/*.so")),
    reason="needs `make wheelscope install`",
)
@pytest.mark.parametrize(
    "block", [b for b in BLOCKS if not b.reason], ids=lambda block: f"{block.page}:{block.line}"
)
def test_a_block_does_what_the_page_says(block: Block):
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    outer = {"MAKEFLAGS", "MFLAGS", "MAKELEVEL"}  # of the `make` that runs this test
    environment = {name: value for name, value in os.environ.items() if name not in outer}
    environment |= {"PATH": path, "COLUMNS": "80"}
    for step in block.steps:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", step.command],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
        )
        if step.output is None:
            assert done.returncode == 0, done.stdout
        else:
            assert matches(step.output, done.stdout), done.stdout


def test_most_pages_are_walked():
    assert len([block for block in BLOCKS if not block.reason]) >= 7


@pytest.mark.parametrize(
    ("expected", "said", "same"),
    [
        ("a\nb\n", "a\nb\n", True),
        ("a\nb\n", "a\nc\n", False),
        ("a\n...\nd\n", "a\nb\nc\nd\n", True),
        ("a\n...\n", "a\n", True),
        ("... 3 of ...\n", "found 3 of 4\n", True),
        ("... 3 of ...\n", "found 2 of 4\n", False),
        ("", "something\n", False),
    ],
)
def test_matches(expected: str, said: str, same: bool):
    assert matches(expected, said) == same

"""Tests that every command of the pages that can run here prints what the page says; the others must say why they do
not run."""

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from scenes import SCENES
from walk import ROOT, Block, blocks, matches, pages

BLOCKS = [block for page in pages() for block in blocks(page)]
COPY = "a copy of the repository"
# The allowed reasons for not running a block, by their first words.
HONEST = (
    "an example address",
    "another machine's",  # its output is quoted from there
    "asks PyPI",
    "breaks an environment",
    "does not end",
    "needs a clone of another project",
    "needs a published release",
    "needs clang 16",
    "needs several machines",
    "not on PyPI yet",
    "run by tests/",
    "takes an hour",
    "takes minutes",
)


def scene_of(block: Block) -> str | None:
    """Returns where a block runs, or None. Some blocks with a reason not to run do run if the reason does not hold
    here."""
    if block.is_run:
        return block.scene
    if block.reason.startswith("needs clang 16") and shutil.which("clang++-16"):
        return COPY
    if block.reason.startswith("asks PyPI") and "ONLINE" in os.environ:
        return block.scene
    return None


def parameters() -> list[object]:
    return [
        pytest.param(block, id=f"{block.page}:{block.line}")
        for block in BLOCKS
        if scene_of(block) is not None
    ]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the quotes are of x86_64")
@pytest.mark.skipif(
    not (ROOT / "build/bin/wheelscope").is_file() or not list(ROOT.glob("cuda_ext_example/*.so")),
    reason="needs `make wheelscope install`",
)
@pytest.mark.parametrize("block", parameters())
def test_a_block_does_what_the_page_says(block: Block, tmp_path: Path):
    scene = SCENES[str(scene_of(block))](tmp_path)
    for step in block.steps:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", step.command],
            cwd=scene.folder,
            env=scene.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=1200,
        )
        if step.output is None:
            assert done.returncode == 0, done.stdout
        else:
            assert matches(step.output, done.stdout), done.stdout


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: f"{block.page}:{block.line}")
def test_a_block_is_run_or_says_why_not(block: Block):
    assert block.scene in SCENES
    assert not block.language, "a shell's block has no language; `text` is for what is not run"
    if block.reason:
        assert block.reason.startswith(HONEST)
    for command in block.left_out:
        assert re.search(rf"^(\$ )?{re.escape(command)}", block.text, re.MULTILINE)
    for test in re.findall(r"[\w/]*tests/[\w/]+\.py", block.reason):
        assert any((folder / test).is_file() for folder in (ROOT / block.page).parents)


def test_blocks_are_found_with_what_is_said_of_them():
    page = """
<!-- in: a new home -->
<!-- not run: `gh`, `pip download`: needs a published release -->
```
pip download \\
  --no-deps it
gh --version
ls
```

```
$ ls \\
  -a
.
$ true
```

```text
ls
```

<!-- not run: needs a GPU -->
```sh
ls
```
"""
    first, second, third = blocks("page.md", page)
    assert (first.scene, first.reason) == ("a new home", "needs a published release")
    assert first.is_run
    assert [step.command for step in first.steps] == ["ls\n"]
    assert [(s.command, s.output) for s in second.steps] == [
        ("ls \\\n  -a\n", ".\n"),
        ("true\n", ""),
    ]
    assert (third.language, third.is_run) == ("sh", False)


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

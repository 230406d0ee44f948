"""Ninja's log as a table and a drawing."""

import subprocess
import sys
import xml.etree.ElementTree
from pathlib import Path
from shlex import quote

import pytest
from opwright.build import explain_build
from opwright.build.explain_build import Step
from opwright.build.project import BuildError

SECOND = 1_000_000_000


def write_log(folder: Path, *steps: tuple[int, int, int, str], version: int = 7) -> Path:
    """Steps as start and end (ms), the second their build began, and the output."""
    lines = [
        f"{start}\t{end}\t{began * SECOND + start * 1_000_000}\t{output}\tabc"
        for start, end, began, output in steps
    ]
    log = folder / ".ninja_log"
    log.write_text("\n".join([f"# ninja log v{version}", *lines, ""]))
    return log


def test_only_the_last_build_counts(tmp_path: Path):
    log = write_log(
        tmp_path,
        (0, 9000, 1000, "CMakeFiles/k.dir/kernels/old.cu.o"),
        (5, 2000, 5000, "CMakeFiles/k.dir/kernels/add.cu.o"),
        (2000, 2100, 5000, "lib/library.so"),
    )
    assert [step.name for step in explain_build.last_build(log)] == [
        "kernels/add.cu",
        "lib/library.so",
    ]


def test_a_build_with_nothing_to_do_is_not_the_last(tmp_path: Path):
    log = write_log(
        tmp_path,
        (5, 2000, 5000, "CMakeFiles/k.dir/kernels/add.cu.o"),
        (3, 41, 9000, f"{tmp_path}/CMakeFiles/cmake.verify_globs"),
    )
    assert [step.name for step in explain_build.last_build(log)] == ["kernels/add.cu"]


def test_steps_share_as_few_lanes_as_ran_at_once():
    a, b, c = Step("a", 0, 2), Step("b", 0, 1), Step("c", 1, 3)
    assert explain_build.lanes([a, b, c]) == [[a], [b, c]]


def test_the_drawing_is_xml_with_a_box_for_each_step():
    steps = [Step("CMakeFiles/k.dir/a<b.cu.o", 0, 2), Step("b.cpp.o", 0.5, 1)]
    drawing = xml.etree.ElementTree.fromstring(explain_build.svg(steps))
    titles = [title.text for title in drawing.iter("{http://www.w3.org/2000/svg}title")]
    assert titles == ["a<b.cu: 2.00 s", "b.cpp: 0.50 s"]


def test_logs_that_say_nothing(tmp_path: Path):
    with pytest.raises(BuildError, match=r"nothing was built yet; run `opwright dev`"):
        explain_build.last_build(write_log(tmp_path))
    with pytest.raises(BuildError, match=r"before 1\.11"):
        explain_build.last_build(write_log(tmp_path, (0, 1, 1, "a"), version=5))
    (tmp_path / ".ninja_log").write_text("other\n")
    with pytest.raises(BuildError, match="is not Ninja's log"):
        explain_build.last_build(tmp_path / ".ninja_log")


def test_the_newest_build_of_the_extension(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    for name in ("extension", "wheelscope"):
        (tmp_path / "build" / name).mkdir(parents=True)
        write_log(tmp_path / "build" / name, (0, 1, 1, "a.o"))
    (tmp_path / "build/extension/recipe.txt").touch()
    assert explain_build.newest_log().parent.name == "extension"


def test_a_reader_that_has_seen_enough(tmp_path: Path):
    write_log(tmp_path, *((i, i + 1, 1, f"{i}.o") for i in range(20_000)))
    command = (
        f"{quote(sys.executable)} -m opwright explain-build {quote(str(tmp_path))} | head -n 1"
    )
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout.count("\n") == 1

"""The developer's loop: which targets, the editable package, rebuilding on save."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from clone import environment, make_clone
from opwright.build import dev

PACKAGE = "demo_ext"


@pytest.mark.parametrize(
    ("named", "listed", "found", "chosen"),
    [
        ("9.0", "8.6", ["8.0"], "9.0"),
        (None, "8.6", ["8.0"], "8.6"),
        (None, None, ["8.0", "9.0"], "8.0;9.0"),
        (None, None, [], "8.0"),
    ],
)
def test_targets(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    named: str | None,
    listed: str | None,
    found: list[str],
    chosen: str,
):
    monkeypatch.delenv("TORCH_CUDA_ARCH_LIST", raising=False)
    if listed:
        monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", listed)
    monkeypatch.setattr(dev.machine, "gpu_targets", lambda: found)
    assert dev.choose_targets(named) == chosen
    assert ("no GPU is seen here" in capsys.readouterr().out) == (not (named or listed or found))


def installed_clone(folder: Path) -> tuple[Path, dict[str, str]]:
    """A clone whose editable install pip has made already, and what a build there sees."""
    clone = make_clone(folder)
    info = clone / "site" / f"{PACKAGE}-0.2.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: 0.2.0\n")
    origin = {"dir_info": {"editable": True}, "url": clone.as_uri()}
    (info / "direct_url.json").write_text(json.dumps(origin))
    cache = {"CCACHE_DIR": os.environ["CCACHE_DIR"]} if "CCACHE_DIR" in os.environ else {}
    return clone, environment(clone, OPWRIGHT_CUDA="off", **cache)


def test_the_library_is_swapped_and_nothing_is_done_twice(tmp_path: Path):
    clone, variables = installed_clone(tmp_path / "clone")
    command = [sys.executable, "-m", "opwright", "dev", "--gpu", "9.0"]

    def run() -> str:
        return subprocess.check_output(command, cwd=clone, env=variables, text=True)

    assert "Linking CXX shared module" in run()
    swapped = clone / PACKAGE / f"lib{PACKAGE}.so"
    before = swapped.stat()
    again = run()
    assert "no work to do" in again
    assert float(re.search(r"up to date after (\S+) s", again)[1]) < 5  # type: ignore[index]
    assert swapped.stat().st_ino == before.st_ino
    (clone / "csrc/new.cpp").write_text("int found_by_the_glob() { return 1; }\n")
    assert "Linking CXX shared module" in run()
    assert swapped.stat().st_ino != before.st_ino


@pytest.mark.skipif(not shutil.which("ccache"), reason="needs ccache, or takes a minute")
def test_watch_builds_and_tests_at_each_save(tmp_path: Path):
    clone, variables = installed_clone(tmp_path / "clone")
    (clone / "test_it.py").write_text("def test_it():\n    assert True\n")
    log = tmp_path / "log"
    with log.open("w") as output:
        watching = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "opwright",
                "dev",
                "--gpu",
                "9.0",
                "--watch",
                "test_it.py",
            ],
            cwd=clone,
            env=variables,
            stdout=output,
            stderr=output,
        )
    try:
        wait_for(log, "watching; Ctrl-C ends it", 1)
        assert "1 passed" in log.read_text()
        with (clone / "csrc/new.cpp").open("a") as source:
            source.write("this does not compile\n")
        wait_for(log, "watching; Ctrl-C ends it", 2)
        assert "csrc/new.cpp\n" in log.read_text()
        assert "error: cmake --build failed; its output is above" in log.read_text()
        (clone / "csrc/new.cpp").unlink()
        wait_for(log, "watching; Ctrl-C ends it", 3)
        assert log.read_text().count("1 passed") == 2
    finally:
        watching.terminate()
        watching.wait()


def test_a_file_that_goes_while_watch_looks_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """An editor's new file may be gone between the listing and the look at its time."""
    (tmp_path / "csrc").mkdir()
    (tmp_path / "csrc/saved.tmp").write_text("")
    looks = []

    def is_file(path: Path) -> bool:
        path.unlink(missing_ok=True)
        looks.append(path)
        return True

    def end(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "is_file", is_file)
    monkeypatch.setattr(time, "sleep", end)
    monkeypatch.setattr(dev.library, "ENGINE", tmp_path / "engine")
    with pytest.raises(KeyboardInterrupt):
        dev.watch(dev.Project(tmp_path, "demo_ext", "1"), [])
    assert [path.name for path in looks] == ["saved.tmp"]


def wait_for(log: Path, text: str, times: int) -> None:
    for _ in range(1200):
        if log.read_text().count(text) >= times:
            return
        time.sleep(0.1)
    raise AssertionError(f"never said {times} times {text!r}:\n{log.read_text()}")

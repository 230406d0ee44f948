"""Tests verifying: what a cell runs, and that a Python without a GIL stays without one."""

import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from shlex import quote

import pytest
from recorded import workspace
from wheelyard.config.matrix import RunCell
from wheelyard.plan.plan import Plan
from wheelyard.problem import Problem
from wheelyard.steps import verify

NAME = "torch-2.11.0-cp311-cp311-manylinux_2_28_x86_64.whl"
# Stand-ins for the modules of a free-threaded Python, one of which has the GIL on.
MODULES = {"torch": "", "cuda_ext_example": "import sys; sys._is_gil_enabled = lambda: {}"}


def run(plan: Plan, python: str, gil: bool, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs the command of a cell whose tests only print words."""
    for name, text in MODULES.items():
        (folder / f"{name}.py").write_text(text.format(gil))
    cell = RunCell("2.15", python, command="echo tested; echo all of it")
    command = verify.command(plan, cell).replace("python -c", f"{quote(sys.executable)} -c")
    return subprocess.run(["sh", "-c", command], cwd=folder, capture_output=True, text=True)


@pytest.mark.parametrize(("python", "gil"), [("3.14t", False), ("3.14", True)])
def test_the_tests_run(plan: Plan, tmp_path: Path, python: str, gil: bool) -> None:
    assert run(plan, python, gil, tmp_path).stdout == "tested\nall of it\n"


def test_a_gil_that_an_import_has_switched_on_fails_the_cell(plan: Plan, tmp_path: Path) -> None:
    done = run(plan, "3.14t", True, tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "importing cuda_ext_example has switched the GIL on" in done.stderr


def test_a_cell_has_its_own_command_or_that_of_all(plan: Plan) -> None:
    facts = plan.matrix.verify
    assert verify.command(plan, RunCell("2.10", "3.11", command="true")) == "true"
    assert verify.command(plan, RunCell("2.10", "3.11")) == facts.command
    default = verify.command(plan.edited(verify={"command": ""}), RunCell("2.10", "3.11"))
    assert default.startswith("python -m pytest")
    tests = ["a b/tests", "README.rst", "one.py"]
    named = plan.edited(verify={"command": "", "tests": tests})
    assert named.test_command.endswith("no:cacheprovider 'a b/tests' one.py")


def test_tests_that_are_not_there_are_refused_before_anything_is_built(plan: Plan) -> None:
    with pytest.raises(
        Problem, match=r"verify\.tests names `tests/lost`, and git knows no such file"
    ):
        verify.jobs(plan.edited(verify={"tests": ["tests/package", "tests/lost"]}))


HINTS = {
    "ERROR: No matching distribution found for einops>=0.8": "requires einops>=0.8, which the image lacks",
    "FileNotFoundError: [Errno 2] No such file or directory: '/tmp/tests/data/a.bin'": "need data/a.bin of the project",
    "ModuleNotFoundError: No module named 'scipy'": "only the tests need scipy",
    "torch._inductor.exc.InvalidCxxCompiler: No working C++ compiler": "has no compiler, because users may have none",
    "ImportError: /opt/venv/x/_binding.abi3.so: undefined symbol: scanner_create": "sdist lacks that source",
    "1 failed": "",
}


@pytest.mark.parametrize("log", HINTS)
def test_a_failure_that_the_image_explains_is_explained(log: str) -> None:
    assert HINTS[log] in verify.meaning(log)
    assert bool(HINTS[log]) == bool(verify.meaning(log))


def test_the_summary_is_pytests_whatever_is_printed_after_it() -> None:
    assert (
        verify.summary("$ run\n== 2 passed, 1 skipped in 0.1s ==\n'Tableau'\n")
        == "2 passed, 1 skipped in 0.1s"
    )
    assert verify.summary("$ run\ndemo was imported\n") == "demo was imported"


def test_a_kept_torch_of_other_bytes_is_downloaded_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def download(words: list[object], *_: object, **__: object) -> None:
        asked.append("torch")
        (Path(str(words[words.index("--dest") + 1])) / NAME).write_text("torch")

    monkeypatch.setattr(verify.shell, "run", download)
    inputs = {"torch": "2.11.0", "arch": "x86_64", "python": "3.11", "index": ""}
    inputs["requirement"] = f"torch==2.11.0 --hash=sha256:{sha256(b'torch').hexdigest()}"
    kept = tmp_path / "torch" / NAME
    kept.parent.mkdir()
    kept.write_text("planted")
    for run in range(2):  # the second one finds it
        place = workspace(tmp_path / f"run{run}", {}, **inputs)
        object.__setattr__(place, "lasting", tmp_path)
        assert verify._torch_wheel(place).read_text() == "torch"
    assert asked == ["torch"]

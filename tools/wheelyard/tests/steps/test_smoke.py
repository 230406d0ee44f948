"""Tests that the smoke test sees what a wheel really does: right and wrong ops, with the wheel's own hash."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from demo_wheel import make_wheel
from repository import write
from wheelyard.core import digest
from wheelyard.steps.smoke import PROGRAM

pytest.importorskip("torch", reason="runs ops")

MODULE = """
import torch
__version__ = "1.0"
@torch.library.custom_op("{name}::plus", mutates_args=())
def plus(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return {result}
"""


def smoke(
    folder: Path,
    name: str,
    result: str,
    *words: str,
    reference: str = "torch.add(x, y)",
    rank: int = 1,
) -> tuple[int, dict[str, Any], Path]:
    wheel = make_wheel(folder, name, module=MODULE.format(name=name, result=result))
    check = {
        "name": "plus",
        "call": f"torch.ops.{name}.plus(x, y)",
        "reference": reference,
        "dtypes": ["float32", "int64"],
    }
    if rank > 1:
        check["shapes"] = [[3] * rank]
    spec = {"checks": [check], "timing": {"name": "plus", "shape": [4] * rank}}
    (folder / "spec.json").write_text(json.dumps(spec))
    evidence = folder / "evidence.json"
    told = words or ("--spec", str(folder / "spec.json"))
    command = [sys.executable, PROGRAM, wheel, *told, "--evidence", evidence]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    seen = json.loads(evidence.read_text()) if evidence.exists() else {"stderr": done.stderr}
    return done.returncode, seen, wheel


def test_a_right_wheel_passes_and_is_named_by_its_hash(tmp_path: Path) -> None:
    code, evidence, wheel = smoke(tmp_path, "right_ext", "a + b")
    assert code == 0, evidence
    assert evidence["passed"] is True
    assert evidence["failures"] == []
    assert evidence["checks"] == {"plus float32 cpu shapes": 5, "plus int64 cpu shapes": 10}
    assert evidence["sha256"] == hashlib.sha256(wheel.read_bytes()).hexdigest()
    assert evidence["program"] == hashlib.sha256(PROGRAM.read_bytes()).hexdigest()
    assert evidence["wheel"] == wheel.name


@pytest.mark.parametrize(
    ("reference", "rank"),
    [
        ("(lambda a, b: torch.add(a, b, alpha=1.0 if n == 0.5 else 1))(x, y)", 1),
        ("(x + y)[:, :]", 2),
        ("torch.cummax(x, -1).values * 0 + x + y", 1),
    ],
)
def test_a_reference_may_be_any_expression(tmp_path: Path, reference: str, rank: int) -> None:
    code, evidence, _ = smoke(tmp_path, "any_ext", "a + b", reference=reference, rank=rank)
    assert code == 0, evidence


def test_an_op_that_loses_bits_is_caught_by_int64_inputs(tmp_path: Path) -> None:
    code, evidence, _ = smoke(tmp_path, "wrong_ext", "(a.double() + b.double()).to(a.dtype)")
    assert code == 1
    assert evidence["passed"] is False
    assert [text.split()[:2] for text in evidence["failures"]] == [["plus", "int64"]]


def test_a_command_may_stand_for_the_checks(tmp_path: Path) -> None:
    command = "python -c 'import commanded_ext; assert commanded_ext.plus'"
    code, evidence, _ = smoke(tmp_path, "commanded_ext", "a + b", "--command", command)
    assert code == 0, evidence
    assert evidence["command"] == command
    code, seen, _ = smoke(tmp_path, "commanded_ext", "a + b", "--command", "python -c 'assert 0'")
    assert code == 1
    assert seen["failures"][0].startswith("the command: ")


def test_the_package_itself_may_say_what_to_check(tmp_path: Path) -> None:
    spec = tmp_path / "spec.json"
    said = ("--spec-command", f"cat {spec}")
    code, evidence, _ = smoke(tmp_path, "saying_ext", "a + b", *said)
    assert code == 0, evidence
    assert evidence["checks"]


def test_a_wheel_that_cannot_be_imported_fails(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "broken_ext", module="raise ImportError('undefined symbol')")
    file = tmp_path / "evidence.json"
    command = [sys.executable, PROGRAM, wheel, "--evidence", file]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert "undefined symbol" in done.stderr
    assert json.loads(file.read_text())["passed"] is False


@pytest.mark.parametrize("end", ["os.kill(os.getpid(), 11)", "os._exit(0)", "sys.exit(0)"])
def test_a_run_that_crashed_is_kept(tmp_path: Path, end: str) -> None:
    module = f"import os, sys\nif 'CRASH' in os.environ: {end}"
    wheel = make_wheel(tmp_path, "crash_ext", module=module)
    file = tmp_path / "evidence.json"
    command = [sys.executable, PROGRAM, wheel, "--evidence", file]
    subprocess.run(command, env={**os.environ, "CRASH": "1"})
    subprocess.run(command)
    assert [run["passed"] for run in json.loads(file.read_text())["runs"]] == [False, True]


def native_module(folder: Path, name: str, text: str = "") -> bytes:
    """Compiles an extension module without Python's headers: its definition is the head of a PyModuleDef."""
    code = f"""
    static long definition[13] = {{1, 0, 0, 0, 0, (long)"{name}", (long)"{text}", -1}};
    extern void *PyModule_Create2(void *, int);
    void *PyInit_{name}(void) {{ return PyModule_Create2(definition, 1013); }}"""
    file = folder / "native.so"
    words = ["cc", "-shared", "-fPIC", "-w", "-x", "c", "-", "-o", file]
    subprocess.run(words, input=code, text=True, check=True)
    return file.read_bytes()


def loaded(wheel: Path, *words: str) -> tuple[list[str], str]:
    done = subprocess.run(
        [sys.executable, PROGRAM, wheel, *words], capture_output=True, text=True, cwd=wheel.parent
    )
    return list(json.loads(done.stdout)["loaded"]), done.stderr


@pytest.mark.parametrize("package", ["space/other/__init__.py", "space/unrelated.txt"])
def test_a_namespace_may_hold_a_library_of_the_same_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    """torch imports cuda.bindings, where a namespace has no file."""
    beside = tmp_path / "beside"
    write(beside, {package: "", "space/other/readme.txt": ""})
    (beside / "space/other/_C.abi3.so").write_bytes(native_module(tmp_path, "_C", "other"))
    monkeypatch.setenv("PYTHONPATH", str(beside))
    more = {"space/ours/__init__.py": b"from . import _C\nimport space.other._C"}
    more["space/ours/_C.abi3.so"] = native_module(tmp_path, "_C", "ours")
    wheel = make_wheel(tmp_path, "space_ours", more=more)
    seen, error = loaded(wheel, "--import-name", "space.ours")
    assert seen == sorted(more), error


def test_a_wheel_may_have_several_packages(tmp_path: Path) -> None:
    """One of them is the module itself; `__main__` is another program's."""
    more = {
        "beside_ext/__init__.abi3.so": native_module(tmp_path, "beside_ext"),
        "top_ext.abi3.so": native_module(tmp_path, "top_ext"),
    }
    wheel = make_wheel(
        tmp_path, "two_ext", module="import beside_ext, top_ext", more={**more, "__main__.py": b""}
    )
    assert loaded(wheel)[0] == sorted([*more, "two_ext.py"])
    assert loaded(wheel, "--import-name", "beside_ext")[0] == sorted(more)[:1]
    other = tmp_path / "other/beside_ext"
    other.mkdir(parents=True)
    (other / "__init__.py").write_text("")
    file = tmp_path / "other/two_ext_start.py"
    file.write_text(
        f"import sys, runpy\nsys.path.insert(0, {str(other.parent)!r})\nimport beside_ext\n"
        f"runpy.run_path({str(PROGRAM)!r}, run_name='__main__')"
    )
    done = subprocess.run([sys.executable, file, wheel], capture_output=True, text=True)
    assert f"{other}/__init__.py was loaded, which is no file of" in done.stderr


def test_a_namespace_alone_shows_nothing(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "bare_ext", more={"bare/inner/__init__.py": b""})
    assert "bare is a namespace; --import-name" in loaded(wheel, "--import-name", "bare")[1]


NEIGHBOUR = """import ctypes, pathlib
ctypes.CDLL(str(pathlib.Path(__file__).parent / "libdemo.so"))
"""


def test_a_library_of_another_package_may_have_the_same_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """torch and most extensions have a module named _C. In another package such a library is fine; elsewhere it has
    taken the place of the wheel's."""
    neighbour = tmp_path / "beside/neighbour"
    neighbour.mkdir(parents=True)
    (neighbour / "__init__.py").write_text(NEIGHBOUR)
    words = ["cc", "-shared", "-x", "c", "-", "-o", neighbour / "libdemo.so"]
    subprocess.run(words, input="int n;", text=True, check=True)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "beside"))
    stray = "import ctypes\nctypes.CDLL('{}')".format(
        shutil.copy(neighbour / "libdemo.so", tmp_path)
    )
    for module, code in (("import neighbour", 0), (stray, 1)):
        wheel = make_wheel(tmp_path, "like_ext", module=module, gpus=("9.0",))
        file = tmp_path / "evidence.json"
        command = [sys.executable, PROGRAM, wheel, "--command", "true", "--evidence", file]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == code, done.stderr
        assert ("which is no file of" in file.read_text()) == bool(code)
        file.unlink()


def test_every_run_of_a_wheel_is_kept(tmp_path: Path) -> None:
    for command, ends in (
        ("true", [True]),
        ("false", [True, False]),
        ("true", [True, False, True]),
    ):
        _, seen, _ = smoke(tmp_path, "kept_ext", "a + b", "--command", command)
        assert [run["passed"] for run in seen["runs"]] == ends
    _, seen, _ = smoke(tmp_path, "kept_ext", "b + a", "--command", "true")
    assert len(seen["runs"]) == 1, "other bytes"


EDITABLE = """
import importlib.util, sys
class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == {name!r}:
            return importlib.util.spec_from_file_location(name, {file!r})
sys.meta_path.insert(0, Finder)
"""


def test_other_code_under_the_wheels_name_is_found_out(tmp_path: Path) -> None:
    """An editable installation does this: its finder comes before every folder."""
    wheel = make_wheel(tmp_path, "real_ext", module="text = 'the wheel'")
    other = tmp_path / "other/real_ext.py"
    other.parent.mkdir()
    other.write_text("text = 'something else'")
    start = tmp_path / "start.py"
    text = EDITABLE.format(name="real_ext", file=str(other))
    start.write_text(
        f"{text}\nimport runpy\nrunpy.run_path({str(PROGRAM)!r}, run_name='__main__')\n"
    )
    done = subprocess.run([sys.executable, start, wheel], capture_output=True, text=True)
    assert done.returncode == 1
    assert f"{other} was loaded, which is no file of {wheel.name}" in done.stderr


def test_an_installation_that_is_not_the_wheels(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "there_ext", module="text = 'the wheel'")
    (tmp_path / "there_ext.py").write_text("text = 'another'")
    command = [sys.executable, PROGRAM, wheel, "--installed"]
    given = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, env=given)
    assert "there_ext.py was loaded, which is no file of" in done.stderr
    (tmp_path / "there_ext.py").write_text("text = 'the wheel'")
    done = subprocess.run(command, capture_output=True, text=True, env=given)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["installed"]
    assert list(seen["loaded"]) == ["there_ext.py"]


TESTS = """
import pytest, {name}
def test_the_wheel() -> None:
    assert {name}.__version__ == "1.0" and not {wrong}
@pytest.mark.skip(reason="no")
def test_skipped() -> None: ...
"""


@pytest.mark.parametrize(("wrong", "passed"), [(False, 1), (True, 0)])
def test_the_projects_own_tests_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: bool, passed: int
) -> None:
    """They are also identified by their files, as in the plan."""
    (tmp_path / "my tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "my tmp"))
    tests = {"a b/test_it.py": TESTS.format(name="own_ext", wrong=wrong), "a b/own_ext.txt": "data"}
    write(tmp_path / "given", tests)
    told = (
        "--tests",
        str(tmp_path / "given"),
        "--tests-command",
        "cd 'a b' && python -m pytest -q",
    )
    code, evidence, _ = smoke(tmp_path, "own_ext", "a + b", *told)
    seen = evidence["tests"]
    assert (seen["passed"], seen["failed"], seen["skipped"]) == (passed, 1 - passed, 1)
    assert seen["files"] == digest.of(
        {n: hashlib.sha256(t.encode()).hexdigest() for n, t in tests.items()}
    )
    assert (code, evidence["passed"]) == (1 - passed, bool(passed))
    assert seen["failures"] == (["test_it::test_the_wheel"] if wrong else [])
    assert not list((tmp_path / "given").rglob("__pycache__")), "they run in a copy"


def test_tests_that_do_not_run_are_a_failure(tmp_path: Path) -> None:
    (tmp_path / "given").mkdir()
    code, evidence, _ = smoke(tmp_path, "none_ext", "a + b", "--tests", str(tmp_path / "given"))
    assert code == 1
    assert evidence["failures"] == ["the tests: 0 passed, 0 failed, exit code 5"]

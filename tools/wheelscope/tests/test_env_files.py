"""`wheelscope env` beside NumPy's files: deleted, cut off, changed, for other machines, and beside other NumPys."""

import json
import os
import py_compile
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest
from program import PROGRAM, compiled, imports, install, run, run_json, scope, site_of, valid
from test_env import HELPER, MODULE, SITE, USES_HELPER, env, loads, package

Change = Callable[[Path], object]


@pytest.fixture
def environment(bare: Path) -> Path:
    """Puts a copy of this Python's NumPy into an environment whose path has a blank."""
    site = site_of(bare)
    for folder in SITE.glob("numpy*"):
        shutil.copytree(folder, site / folder.name, ignore=shutil.ignore_patterns("tests"))
    record = site / f"numpy-{numpy.__version__}.dist-info/RECORD"
    lines = [
        line
        for line in record.read_text().splitlines()
        if not line.startswith("..") and (site / line.split(",")[0]).exists()
    ]
    record.write_text("\n".join(lines) + "\n")
    return bare


def cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 3])


def for_another_machine(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[18:20] = (62 if data[18] != 62 else 183).to_bytes(2, "little")
    path.write_bytes(data)


def for_another_python(path: Path) -> None:
    path.rename(path.with_name(path.name.replace("cpython-3", "cpython-2")))


CHANGES: dict[str, tuple[str, Change, str]] = {
    "deleted": ("numpy/_core/_multiarray_umath*.so", Path.unlink, "missing"),
    "code deleted": ("numpy/version.py", Path.unlink, "missing"),
    "library deleted": ("numpy.libs/lib*openblas*", Path.unlink, "missing"),
    "cut off": ("numpy/_core/_multiarray_umath*.so", cut_off, "shortened"),
    "another machine": ("numpy/linalg/_umath_linalg*.so", for_another_machine, "other-machine"),
    "another Python": ("numpy/_core/_multiarray_umath*.so", for_another_python, "missing"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_breaks_numpy(name: str, environment: Path) -> None:
    assert env(environment, code=0)["numpy"]["loads"] == "yes"
    pattern, change, state = CHANGES[name]
    (path,) = site_of(environment).glob(pattern)
    change(path)
    found = env(environment, code=1)["numpy"]
    assert found["loads"] == "no"
    assert not imports(environment, "numpy")
    assert (state, str(path)) in [(one["state"], one["path"]) for one in found["files"]]
    text = run("env", environment, code=1).stdout
    assert f"pip install --force-reinstall --no-deps numpy=={numpy.__version__}" in text


def test_what_nobody_imports_does_not_break_numpy(environment: Path) -> None:
    (site_of(environment) / "numpy/f2py/crackfortran.py").unlink()
    found = env(environment, code=1)["numpy"]
    assert found["loads"] == "yes"
    assert [one["state"] for one in found["files"]] == ["missing"]
    assert imports(environment, "numpy")


# In front of a command: root may read everything.
PLAIN = [] if os.geteuid() else ["setpriv", "--bounding-set=-all"]

# What `env` says of NumPy, and whether it can be imported.
UNREADABLE = {
    "numpy/_core": ("no", False),
    "numpy/_core/multiarray.py": ("no", False),
    "numpy/_core/_multiarray_umath*.so": ("no", False),
    "numpy/f2py/crackfortran.py": ("yes", True),
    "numpy/optional.py": ("depends", False),
    "numpy/compiled.py": ("depends", True),
}


@pytest.mark.parametrize("pattern", UNREADABLE)
def test_files_that_may_not_be_read(pattern: str, environment: Path) -> None:
    """As after `sudo pip install` under a strict umask."""
    site = site_of(environment)
    for folder in site.glob("numpy/**/__pycache__"):
        shutil.rmtree(folder)
    record = site / f"numpy-{numpy.__version__}.dist-info/RECORD"
    record.write_text(record.read_text() + "numpy/optional.py,,\nnumpy/compiled.py,,\n")
    for name in ("optional", "compiled"):
        (site / f"numpy/{name}.py").touch()
    py_compile.compile(str(site / "numpy/compiled.py"))
    with (site / "numpy/__init__.py").open("a") as init:
        init.write("\ntry:\n    from . import optional\nexcept ImportError:\n    pass\n")
        init.write("from . import compiled\n")
    (path,) = site.glob(pattern)
    path.chmod(0)
    words = [*PLAIN, PROGRAM, "env", environment, "--json"]
    done = subprocess.run(words, capture_output=True, text=True)
    (found,) = valid(json.loads(done.stdout))["distributions"]
    words = [*PLAIN, environment / "bin/python", "-B", "-c", "import numpy"]
    works = not subprocess.run(words, capture_output=True).returncode
    path.chmod(0o755)
    assert done.returncode == 1
    assert (found["loads"], works) == UNREADABLE[pattern]
    assert "unreadable" in [one["state"] for one in found["files"]]


def test_a_folder_that_may_not_be_read(environment: Path) -> None:
    site = site_of(environment)
    site.chmod(0)
    done = subprocess.run([*PLAIN, PROGRAM, "env", environment], capture_output=True, text=True)
    site.chmod(0o755)
    assert (done.returncode, done.stderr) == (3, f"wheelscope: {site}: Permission denied\n")


def test_a_library_that_lost_what_is_not_loaded(bare: Path) -> None:
    """Such as a stripped one, or an incomplete copy: the loader maps only segments."""
    site = site_of(bare)
    empty = 'void *PyModule_New(const char *); void *PyInit__C(void) { return PyModule_New("_C"); }'
    module = compiled(site / "pkg/_C.so", empty)
    code = "try:\n    import pkg._C\nexcept SystemError:\n    pass  # it has no definition"
    (site / "pkg/__init__.py").write_text(code)
    install(bare, "pkg")
    recorded = f"pkg/__init__.py,,\npkg/_C.so,sha256=x,{module.stat().st_size + 5000}\n"
    (site / "pkg-1.0.dist-info/RECORD").write_text(recorded)
    found = env(bare, code=1)["pkg"]
    assert imports(bare, "pkg")
    assert found["loads"] == "yes"
    assert [one["state"] for one in found["files"]] == ["shortened"]


def test_source_that_was_cut_off(environment: Path) -> None:
    """What is left of it may end in the middle of a statement, or lack what others import from it."""
    cut_off(site_of(environment) / "numpy/version.py")
    assert not imports(environment, "numpy")
    assert env(environment, code=1)["numpy"]["loads"] == "depends"


def test_source_that_is_imported_by_a_name(bare: Path) -> None:
    """When others ask for what is in it, as with pydantic."""
    lazy = (
        "from importlib import import_module\nPLACES = {'x': '.main'}\ndef __getattr__(name):\n    "
    )
    lazy += "return getattr(import_module(PLACES[name], __name__), name)"
    (site_of(bare) / "lazy").mkdir()
    (site_of(bare) / "lazy/main.py").write_text("x = 1")
    package(bare, "lazy", lazy, None)
    package(bare, "user", "from lazy import x")
    assert env(bare, code=0)["user"]["loads"] == "yes"
    (site_of(bare) / "lazy/main.py").unlink()
    assert imports(bare, "lazy")
    assert not imports(bare, "user")
    found = loads(env(bare, code=1))
    assert (found["lazy"], found["user"]) == ("depends", "depends")


def test_a_library_that_ends_the_process(environment: Path) -> None:
    """The loader maps more than the file has: no handler of Python is asked."""
    package(environment, "user", "try:\n    import numpy\nexcept ImportError:\n    pass")
    (module,) = site_of(environment).glob("numpy/_core/_multiarray_umath*.so")
    cut_off(module)
    assert not imports(environment, "user")
    found = env(environment, code=1)["user"]
    assert (found["loads"], found["imports"]) == ("depends", "numpy")


def test_a_foreign_module(environment: Path) -> None:
    (site_of(environment) / "numpy/left_over.py").write_text("")
    found = env(environment, code=1)["numpy"]
    assert [one["state"] for one in found["files"]] == ["foreign"]


@pytest.mark.parametrize("contents", [b"", b"\x7fELF", b"not a library"])
def test_a_bad_library_on_the_path(
    contents: bytes, bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = compiled(tmp_path / "lib/libx.so.1", HELPER, "-Wl,-soname,libx.so.1")
    text = "if len(__name__) > 1:\n    import pkg._C\n"
    package(bare, "pkg", text, USES_HELPER, target, f"-Wl,-rpath,{target.parent}")
    assert env(bare, code=0)["pkg"]["loads"] == "yes"
    bad = tmp_path / "bad"
    bad.mkdir()
    (bad / "libx.so.1").write_bytes(contents)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(bad))
    assert not imports(bare, "pkg._C")
    found = env(bare, code=None)["pkg"]
    assert found["loads"] == "depends"  # the condition is not evaluated
    assert found["broken"][0]["need"] == "depends"


def test_a_module_of_numpys_headers(environment: Path) -> None:
    source = """
    #include <Python.h>
    #include <numpy/arrayobject.h>
    static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "made"};
    PyMODINIT_FUNC PyInit_made(void) { import_array(); return PyModule_Create(&module); }
    """
    site = site_of(environment)
    include = f"-I{sysconfig.get_path('include')}", f"-I{numpy.get_include()}"
    module = compiled(site / "made/made.so", source, *include)
    (site / "made/__init__.py").write_text("from . import made\n")
    install(environment, "made")
    (item,) = scope("show", module)["items"]
    assert item["numpy_abi"]["kind"] == "both"
    assert imports(environment, "made")
    assert env(environment)["made"]["loads"] == "yes"


def test_python_is_asked(environment: Path) -> None:
    package(environment, "pkg", "import sys\nif sys.path:\n    raise OSError('not today')\n")
    plain = run_json("env", environment, code=0)["distributions"]
    assert {one["name"]: one["imported"] for one in plain} == {"numpy": [], "pkg": []}
    asked = {
        one["name"]: one
        for one in run_json("env", environment, "--import", code=1)["distributions"]
    }
    said: Any = asked["pkg"]["imported"]
    assert said == [{"name": "pkg", "error": "OSError: not today"}]
    assert asked["numpy"]["imported"] == [{"name": "numpy", "error": None}]


def test_debian_strips_libraries_after_writing_record(tmp_path: Path) -> None:
    usr, library = tmp_path / "usr", Path(sysconfig.get_path("stdlib"))
    interpreter = Path(sys._base_executable).resolve()  # type: ignore[attr-defined]
    (usr / "bin").mkdir(parents=True)
    shutil.copy(interpreter, usr / "bin" / interpreter.name)
    site = usr / "lib/python3/dist-packages"
    info = site / "package-1.0.dist-info"
    info.mkdir(parents=True)
    (usr / "lib" / library.name).symlink_to(library)
    module = compiled(site / "package/_C.so", MODULE)
    (info / "METADATA").write_text("Name: package\nVersion: 1.0\n")
    (info / "RECORD").write_text(f"package/_C.so,sha256=x,{module.stat().st_size + 100}\n")
    found = env(usr / "bin" / interpreter.name, code=0)
    assert found["package"]["libraries"] == 1

"""Two small projects with OpenMP, from `init` to install: whose runtime a wheel loads where the system has none.

The one links to torch and must take torch's, as a second one would be a second pool of threads. The other never
imports torch and must carry its own, grafted by auditwheel; the gate has nothing against that.
"""

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from real_releases import real_release

pytestmark = real_release(large=True)
COMMAND = [sys.executable, "-m", "wheelyard"]
PYPROJECT = """[build-system]
requires = ["setuptools"{more}]
build-backend = "setuptools.build_meta"
[project]
name = "openmp-{name}"
version = "1.0"
[tool.setuptools]
packages = ["openmp_{name}"]
"""
SETUPS = {
    "torch": """from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension as Extension
more = {"cmdclass": {"build_ext": BuildExtension.with_options(use_ninja=False)}}
""",
    "alone": "from setuptools import Extension, setup\nmore = {}\n",
}
CALL = """flags = dict(extra_compile_args=["-fopenmp"], extra_link_args=["-fopenmp"])
setup(ext_modules=[Extension("openmp_{name}._C", ["ops.cpp"], **flags)], **more)
"""
COUNT = """
static int count() {
  int n = 0;
#pragma omp parallel reduction(+ : n)
  n += 1;
  return n;
}
"""
BINDINGS = {
    "torch": '#include <torch/extension.h>\nPYBIND11_MODULE(_C, m) { m.def("threads", &count); }\n',
    "alone": """#include <Python.h>
static PyObject* threads(PyObject*, PyObject*) { return PyLong_FromLong(count()); }
static PyMethodDef methods[] = {{"threads", threads, METH_NOARGS, ""}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "_C", "", -1, methods};
PyMODINIT_FUNC PyInit__C() { return PyModule_Create(&module); }
""",
}
TEST = """import openmp_{name}
def test_one_runtime():
    assert openmp_{name}.threads() >= 1
    maps = open("/proc/self/maps").read().splitlines()
    (loaded,) = {{line.split()[-1] for line in maps if "libgomp" in line}}
    assert "{place}/libgomp" in loaded
"""
PLACES = {"torch": "torch/lib", "alone": "openmp_alone.libs"}


def write(folder: Path, name: str) -> None:
    is_torch = name == "torch"
    files = {
        "pyproject.toml": PYPROJECT.format(name=name, more=', "torch"' if is_torch else ""),
        "setup.py": SETUPS[name] + CALL.format(name=name),
        "ops.cpp": COUNT + BINDINGS[name],
        f"openmp_{name}/__init__.py": ("import torch\n" if is_torch else "")
        + "from ._C import threads\n",
        "tests/test_threads.py": TEST.format(name=name, place=PLACES[name]),
    }
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


@pytest.mark.parametrize("name", PLACES)
def test_a_wheel_loads_one_openmp(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "a project"
    write(folder, name)
    git = ["git", "-c", "user.name=test", "-c", "user.email=test@localhost"]
    for command in (
        [*git, "init", "-q"],
        [*COMMAND, "init"],
        [*git, "add", "."],
        [*git, "commit", "-qm", "first"],
        [*COMMAND, "release", "--base", "debian", "--wheel", "*torch2.15-cp311"],
    ):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = (folder / "wheelhouse").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        grafted = [n for n in archive.namelist() if ".libs/lib" in n]
    assert len(grafted) == (0 if name == "torch" else 1)
    jobs: dict[str, Any] = json.loads((folder / "build/release/release.json").read_text())["jobs"]
    (verified,) = (job for job_name, job in jobs.items() if job_name.startswith("verify/"))
    assert "1 passed" in verified["facts"]["verdict"]

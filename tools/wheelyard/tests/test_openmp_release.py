"""Releases two small projects with OpenMP, from `init` to install, and checks whose libraries a wheel loads if the
system has none.

One links to torch and must take torch's OpenMP, as a second one would be a second pool of threads. The other never
imports torch and must carry its own, and Debian's libyaml, both grafted by auditwheel, beside a shared and a static
library that it builds itself; the gate accepts that, and the SBOM names the grafted ones.
"""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import repository
from demo_project import record
from repository import ROOT, real_release
from wheelyard.tools import sbom, wheelscope

pytestmark = real_release(large=True)
COMMAND = [sys.executable, "-m", "wheelyard"]
PYPROJECT = """[build-system]
requires = ["setuptools"{more}]
build-backend = "setuptools.build_meta"
[project]
name = "openmp-{name}"
version = "1.0"
dependencies = ["torch<2.11"]
[tool.setuptools]
packages = ["openmp_{name}"]
"""
SETUPS = {
    "torch": """from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension as Extension
more = {"cmdclass": {"build_ext": BuildExtension.with_options(use_ninja=False)}}
""",
    "alone": """import subprocess
from pathlib import Path
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
class Build(build_ext):
    def run(self):
        place = Path(self.build_lib, "openmp_alone")
        place.mkdir(parents=True, exist_ok=True)
        self.extensions[0].library_dirs.append(str(place))
        words = ["cc", "-shared", "-fPIC", "-Wl,-soname,libown.so", "own.c", "-o", place / "libown.so"]
        subprocess.run(words, check=True)
        super().run()
more = {"cmdclass": {"build_ext": Build}, "libraries": [("kept", {"sources": ["kept.c"]})]}
""",
}
LINKED = {
    "torch": "{}",
    "alone": '{"libraries": ["own", "yaml"], "runtime_library_dirs": ["$ORIGIN"], "depends": ["own.c"]}',
}
CALL = """flags = dict(extra_compile_args=["-fopenmp"], extra_link_args=["-fopenmp"], **{linked})
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
#include <yaml.h>
extern "C" int own(int), kept(int);
static PyObject* threads(PyObject*, PyObject*) {
  return PyLong_FromLong(yaml_get_version_string() ? own(kept(count())) : 0);
}
static PyMethodDef methods[] = {{"threads", threads, METH_NOARGS, ""}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "_C", "", -1, methods};
PyMODINIT_FUNC PyInit__C() { return PyModule_Create(&module); }
""",
}
TEST = """import openmp_{name}
def test_one_runtime():
    assert openmp_{name}.threads() >= 1
    maps = open("/proc/self/maps").read().splitlines()
    for library in {places}:
        name = library.split("/")[-1]
        (loaded,) = {{line.split()[-1] for line in maps if name in line}}
        assert library in loaded
"""
PLACES = {
    "torch": ["torch/lib/libgomp"],
    "alone": ["openmp_alone.libs/libgomp", "openmp_alone.libs/libyaml", "openmp_alone/libown.so"],
}


def write(folder: Path, name: str) -> None:
    is_torch = name == "torch"
    files = {
        "pyproject.toml": PYPROJECT.format(name=name, more=', "torch"' if is_torch else ""),
        "setup.py": SETUPS[name] + CALL.format(name=name, linked=LINKED[name]),
        **{f"{own}.c": f"int {own}(int n) {{ return n; }}\n" for own in ("own", "kept")},
        "ops.cpp": COUNT + BINDINGS[name],
        f"openmp_{name}/__init__.py": ("import torch\n" if is_torch else "")
        + "from ._C import threads\n",
        "tests/test_threads.py": TEST.format(name=name, places=PLACES[name]),
    }
    repository.write(folder, files)
    (folder / "ci").mkdir()
    shutil.copy(ROOT / "ci/torch.lock", folder / "ci")  # so that images share torch's layers


def check_grafted(wheel: Path, folder: Path) -> None:
    """Checks that grafted libraries have unique names, the module asks for those and looks beside itself, and the SBOM
    lists them."""
    libraries = {Path(library["path"]).name: library for library in wheelscope.show(wheel)["elf"]}
    grafted = [n for n in libraries if re.fullmatch(r"lib(gomp|yaml-0)-[0-9a-f]{8}\.so[\d.]*", n)]
    assert len(grafted) == 2
    (module,) = (library for name, library in libraries.items() if name.startswith("_C."))
    assert {*grafted, "libown.so"} <= set(module["needed"])
    assert "$ORIGIN/../openmp_alone.libs" in json.dumps(module)
    command = [sys.executable, "-m", "auditwheel", "show", wheel]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert f'"{wheel.stem.split("-")[-1]}"' in said
    parts = json.loads(sbom.extract(wheel, folder).read_text())["components"]
    names = [part["name"].split(".")[0] for part in parts]
    assert names == ["libgomp", "libyaml-0"]


@pytest.mark.parametrize("name", PLACES)
def test_a_wheel_loads_one_openmp(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "a project"
    write(folder, name)
    apt = '\n[build]\napt = ["libyaml-dev"]\n'
    git = ["git", "-c", "user.name=test", "-c", "user.email=test@localhost"]
    for command in (
        [*git, "init", "-q"],
        [*COMMAND, "init"],
        ["sh", "-c", f"printf '%s' '{apt}' >>ci/matrix.toml"],
        [*git, "add", "."],
        [*git, "commit", "-qm", "first"],
        [*COMMAND, "release", "--base", "debian", "--wheel", "*torch2.10-cp311"],
    ):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = (folder / "wheelhouse").glob("*.whl")
    if name == "torch":
        assert not [
            library for library in wheelscope.show(wheel)["elf"] if ".libs/" in library["path"]
        ]
    else:
        check_grafted(wheel, tmp_path)
    jobs = record(folder).items()
    (verified,) = (job for job_name, job in jobs if job_name.startswith("verify/"))
    assert "1 passed" in verified["facts"]["verdict"]

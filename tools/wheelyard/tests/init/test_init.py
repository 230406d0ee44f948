"""Tests `wheelyard init`: it recognises a project by its files, writes sound files, and overwrites nothing."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from repository import ROOT, committed, git, wheelyard, write
from wheelyard.config import matrix, policy
from wheelyard.config.matrix import KNOWN
from wheelyard.init import sources
from wheelyard.init.choice import Choice, choose
from wheelyard.init.files import RELEASE
from wheelyard.plan import plan as planning
from wheelyard.plan.plan import Options
from wheelyard.tools import images

NO_PROJECT_TABLE = {  # as in pytorch/extension-cpp: all names are in setup.py
    "pyproject.toml": '[build-system]\nrequires = ["setuptools", "torch"]\nbuild-backend = "setuptools.build_meta"\n',
    "setup.py": 'from setuptools import setup\nlibrary_name = "their_ext"\nsetup(name=library_name, version="0.1")\n',
    "their_ext/__init__.py": "",
    "their_ext/csrc/ops.cpp": "#include <torch/extension.h>\n",
    "test/test_it.py": "",
}
LIMITED = {
    **NO_PROJECT_TABLE,
    "setup.py": NO_PROJECT_TABLE["setup.py"]
    + 'options={"bdist_wheel": {"py_limited_api": "cp310"}}\n',
    "their_ext/csrc/ops.cpp": "#include <Python.h>\n#include <torch/library.h>\n",
    "their_ext/csrc/ops.cu": "#include <ATen/ATen.h>\n",
}
OTHER_IMPORT = {
    "pyproject.toml": '[project]\nname = "their-ext"\ndynamic = ["version"]\nrequires-python = ">=3.12"\n'
    '[build-system]\nrequires = ["setuptools>=80", "setuptools_scm[toml]>=8", "torch"]\n',
    "src/theirs/__init__.py": "",
    "src/theirs/ops.c": "#include <Python.h>",
    "tests/test_it.py": "",
}


def chosen(folder: Path) -> Choice:
    return choose(sources.read(folder), tomllib.loads(KNOWN.read_text()))


def init(folder: Path) -> str:
    done = wheelyard(folder, "init")
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize(("files", "strategy"), [(NO_PROJECT_TABLE, "each"), (LIMITED, "abi3")])
def test_the_strategy_follows_from_the_sources(
    tmp_path: Path, files: dict[str, str], strategy: str
) -> None:
    choice = chosen(write(tmp_path, files))
    assert choice.strategy == strategy
    assert "ops.cpp" in choice.reasons["strategy"] or "setup.py" in choice.reasons["strategy"]


@pytest.mark.parametrize("files", [NO_PROJECT_TABLE, LIMITED, OTHER_IMPORT])
def test_what_is_written_is_sound(tmp_path: Path, files: dict[str, str]) -> None:
    said = init(write(tmp_path, files))
    assert "written: ci/matrix.toml" in said
    plan = planning.load(Options(), tmp_path)
    assert len(plan.matrix.torch) == 2
    assert len(plan.wheels) >= 2
    policy.load(tmp_path / policy.FILE)
    workflow = (tmp_path / ".github/workflows/wheels.yml").read_text()
    jobs = yaml.safe_load(workflow)["jobs"]
    assert jobs["wheels"]["permissions"] == {"contents": "read"}
    for job in jobs.values():  # each calls a workflow that exists
        called = job["uses"].partition("@")[0].partition("/.github/")[2]
        assert (ROOT / ".github" / called).is_file()
    assert len(workflow.splitlines()) <= 15


def test_the_workflows_are_called_at_the_commit_of_their_tag(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GitHub is a folder here. The tag is annotated, so it is an object of its own."""
    theirs = tmp_path / "github/cuda-ext-example/cuda_ext_example"
    committed(write(theirs, {"a": ""}))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", f"url.{tmp_path}/github/.insteadOf")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "https://github.com/")
    said = init(write(tmp_path / "before", NO_PROJECT_TABLE))
    assert f"GitHub did not give the commit of {RELEASE}" in " ".join(said.split())
    git(theirs, "tag", "--annotate", RELEASE, "--message", "x")
    init(write(tmp_path / "after", NO_PROJECT_TABLE))
    workflow = (tmp_path / "after/.github/workflows/wheels.yml").read_text()
    assert workflow.count(f".yml@{git(theirs, 'rev-parse', 'HEAD')} # {RELEASE}\n") == 2


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    write(tmp_path, NO_PROJECT_TABLE)
    init(tmp_path)
    file = tmp_path / matrix.FILE
    file.write_text(file.read_text() + "# mine\n")
    assert "kept: ci/matrix.toml exists already" in init(tmp_path)
    assert file.read_text().endswith("# mine\n")


def test_a_workflow_of_the_projects_own_is_left_alone(tmp_path: Path) -> None:
    """boost-histogram and pycairo have one of this name."""
    own = tmp_path / ".github/workflows/wheels.yml"
    said = init(write(tmp_path, {**NO_PROJECT_TABLE, str(own): "name: theirs\n"}))
    assert "written: .github/workflows/wheelyard.yml" in said
    assert own.read_text() == "name: theirs\n"


def test_names_that_setup_computes_can_be_given(tmp_path: Path) -> None:
    """nm-vllm is like this, and its build needs torch, so the backend is not asked."""
    setup = "from setuptools import setup\nsetup(name=' '.strip() or 'their_ext')\n"
    write(tmp_path, {**NO_PROJECT_TABLE, "setup.py": setup})
    assert "run `wheelyard init --name NAME`" in refused(tmp_path, {})
    for names, words in (
        (["--name=a b"], "`a b` is not a name"),
        (["--name=their-ext", "--import=their-ext"], "`their-ext` is not a name that Python can"),
    ):
        done = wheelyard(tmp_path, "init", *names)
        assert (done.returncode, words in done.stderr) == (1, True)
    assert wheelyard(tmp_path, "init", "--name=their-ext", "--import=their_ext").returncode == 0
    plan = planning.load(Options(base="debian"), tmp_path)
    assert (plan.project.name, plan.project.import_name) == ("their-ext", "their_ext")


def test_a_project_without_cuda_code_runs_beside_any_build_of_torch(tmp_path: Path) -> None:
    """PyPI's torch is a CUDA build; a wheel without device code serves its users too."""
    folder = write(tmp_path, NO_PROJECT_TABLE)
    init(folder)
    plan = planning.load(Options(base="debian"), folder)
    assert {torch.cuda[0] for torch in plan.matrix.torch.values()} == {"cpu"}
    for wheel in plan.wheels:
        assert wheel.toolkit is None
        assert images.for_build(plan, wheel)["lacks"] == ""
        assert len(plan.cells_run(wheel)) == 1


def test_calls_of_nvidias_libraries_are_cuda_without_device_code(tmp_path: Path) -> None:
    """torch-batch-svd is made like this: CUDAExtension, and C++ that calls cuSOLVER. A gate cannot ask for device
    code."""
    extension = "ext_modules = [CUDAExtension('their_ext._C', ['their_ext/csrc/ops.cpp'])]\n"
    files = {**NO_PROJECT_TABLE, "setup.py": extension + NO_PROJECT_TABLE["setup.py"]}
    init(write(tmp_path, files))
    matrix_file = tomllib.loads((tmp_path / matrix.FILE).read_text())
    assert "cpu" not in {cuda for torch in matrix_file["torch"].values() for cuda in torch["cuda"]}
    written = tomllib.loads((tmp_path / policy.FILE).read_text())
    assert written["levels"] == {"cuda-code": "off"}
    policy.load(tmp_path / policy.FILE)


def test_submodules_that_were_not_cloned_are_named(tmp_path: Path) -> None:
    """A plain clone of flash-attention is like this: its kernels need CUTLASS."""
    other, origin = write(tmp_path / "other", {"a.h": ""}), write(tmp_path / "origin", LIMITED)
    allowed = ("-c", "protocol.file.allow=always")
    committed(other)
    git(origin, "init")
    git(origin, *allowed, "submodule", "add", str(other), "csrc/headers")
    git(origin, "commit", "-m", "first")
    git(tmp_path, "clone", str(origin), "clone")
    assert sources.empty_submodules(origin) == []
    assert sources.empty_submodules(tmp_path / "clone") == ["csrc/headers"]


NAMED = '[project]\nname = "theirs"\nversion = "1"\n'
SCRIPTS = {"benchmark/__init__.py": "", "other/__init__.py": ""}
NANOBIND = "# nanobind_add_module(other x.cpp)\nNanobind_Add_Module( Theirs\n  STABLE_ABI x.cpp)\n"
PYBIND = 'set(NAME "Theirs")\npybind11_add_module(${OTHER} x)\npybind11_add_module(${NAME} x)\n'
VARIABLE = "set(NAME ${SKBUILD_PROJECT_NAME})\nnanobind_add_module(${NAME} x.cpp)\n"
MADE_BY_SETUP = "setup(name='theirs', ext_modules=[CUDAExtension('theirs', ['x.cu'])])\n"
CFG = "[metadata]\nname = theirs\n[options]\npython_requires = >=3.12\ninstall_requires =\n  einops>=0.8\n  torch\n"
ONE_TEXT = 'setup(name="their_ext", extras_require={"test": "ubelt"}, install_requires=[])'
WITHOUT_TESTS = {name: text for name, text in NO_PROJECT_TABLE.items() if "test_it" not in name}
GUESSED, KLAY = "is_import_guessed", {"src/klay/__init__.py": "", **SCRIPTS}
FACTS: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
    "names in setup.py": (NO_PROJECT_TABLE, {"name": "their_ext", "import_name": "their_ext", "tests": ["test"]}),
    "an import name of its own": (OTHER_IMPORT, {"name": "their-ext", "import_name": "theirs", "has_cuda": False}),
    "a script named test": ({**WITHOUT_TESTS, "tests/test.py": ""}, {"tests": []}),
    "a module of CMake, as in manifold3d": (
        {"pyproject.toml": NAMED, "python/CMakeLists.txt": NANOBIND}, {"import_name": "Theirs", GUESSED: False},
    ),
    "a module of CMake, as in ducc0": (
        {"pyproject.toml": NAMED, "CMakeLists.txt": PYBIND}, {"import_name": "Theirs", GUESSED: False},
    ),
    "a module named by a variable": (
        {"pyproject.toml": NAMED, "CMakeLists.txt": VARIABLE, "python/test/test_it.py": ""},
        {"import_name": "theirs", "tests": ["python/test"]},
    ),
    "poetry's own table, as in fnv_hash_fast": (
        {"pyproject.toml": f'{NAMED}[tool.poetry.dependencies]\nfnvhash = "*"\n'}, {"dependencies": None},
    ),
    "a module that setup.py makes, as in torchac_cuda": (
        {"setup.py": MADE_BY_SETUP, "x.cu": ""}, {"import_name": "theirs", GUESSED: False},
    ),
    "a package that CMake fills, as in klaycircuits": (
        {"pyproject.toml": f'{NAMED}[tool.scikit-build]\nwheel.packages = ["src/klay"]\n', **KLAY},
        {"import_name": "klay", "package": "src/klay/", GUESSED: False},
    ),
    "a package that CMake fills, by its name": (
        {"pyproject.toml": f'{NAMED}[tool.scikit-build.wheel.packages]\nklay = "src/klay"\n', **KLAY},
        {"import_name": "klay", "package": "src/klay/", GUESSED: False},
    ),
    "a package beside scripts, as in gemmi": (
        {"pyproject.toml": NAMED, "python/theirs/__init__.py": "", **SCRIPTS},
        {"import_name": "theirs", "package": "python/theirs/", GUESSED: False},
    ),
    "requirements in setup.cfg": (
        {"setup.cfg": CFG, "theirs/__init__.py": ""},
        {"dependencies": ["einops>=0.8", "torch"], "requires_python": ">=3.12"},
    ),
    "an extra that is one text": (
        {**NO_PROJECT_TABLE, "pyproject.toml": "", "setup.py": f"from setuptools import setup\n{ONE_TEXT}"},
        {"test_requires": []},
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", FACTS)
def test_facts_that_the_files_tell(tmp_path: Path, what: str) -> None:
    files, expected = FACTS[what]
    found = vars(sources.read(write(tmp_path, files)))
    assert {name: found[name] for name in expected} == expected


def test_sources_beside_the_project_are_found(tmp_path: Path) -> None:
    """A link leads to those of the one project; only the setup.py of the other knows where they are."""
    write(tmp_path, {"engine/kernel.cu": "", "engine/CMakeLists.txt": "", "engine/loop/.keep": ""})
    write(tmp_path / "python", NO_PROJECT_TABLE)
    (tmp_path / "python/engine").symlink_to("../engine")
    (tmp_path / "engine/loop/back").symlink_to("../..")
    assert sources.read(tmp_path / "python").reasons["cuda"] == "engine/kernel.cu is CUDA code"
    setup = {"pyproject.toml": '[project]\nname = "their-torch"\n', "their/torch/__init__.py": ""}
    write(tmp_path / "other/their_torch", setup)
    found = sources.read(tmp_path, "other/their_torch")
    assert found.reasons["cuda"] == "engine/kernel.cu is CUDA code"
    assert found.repository == tmp_path
    assert found.import_name == "their.torch"  # `their` belongs to other distributions too


STABLE = {
    "pyproject.toml": '[project]\nname = "their-ext"\nversion = "1.0"\n',
    "their_ext/__init__.py": "",
    "csrc/ops.cpp": "STABLE_TORCH_LIBRARY(their_ext, m) {}\n",
    "csrc/ops.cu": "__global__ void f() {}\n",
    "tests/ext/binding.cpp": "#include <torch/extension.h>\n",
    "tools/other/pyproject.toml": "",
    "tools/other/src/main.cpp": "#include <Python.h>\n",
}


def written(folder: Path, files: dict[str, str]) -> dict[str, Any]:
    """Returns the matrix that init writes, after the plan has read it."""
    init(write(folder, files))
    planning.load(Options(base="debian"), folder)
    return tomllib.loads((folder / matrix.FILE).read_text())


def refused(folder: Path, files: dict[str, str]) -> str:
    done = wheelyard(write(folder, files), "init")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert not (folder / matrix.FILE).exists()
    return done.stderr


def test_a_universal_project_is_recognised(tmp_path: Path) -> None:
    """Tests, and projects in folders of their own, are not its sources."""
    found = written(tmp_path, STABLE)
    assert found["strategy"]["default"] == "universal"
    assert list(found["torch"]) == list(tomllib.loads(KNOWN.read_text())["torch"])
    assert len(planning.load(Options(base="debian"), tmp_path).all_wheels) == 1


def test_a_stable_extension_that_nvcc_compiles_is_not_universal(tmp_path: Path) -> None:
    """torch's CUDAExtension calls nvcc, which the toolkit that serves every CUDA lacks."""
    setup = """from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension, CUDAExtension
Extension = CUDAExtension if True else CppExtension
setup(
    name="their_ext", version="0.1", cmdclass={"build_ext": BuildExtension},
    ext_modules=[Extension("their_ext._C", ["csrc/plus.cu"], py_limited_api=True)],
)
"""
    files = {"setup.py": setup, "their_ext/__init__.py": "", "pyproject.toml": ""}
    files["csrc/plus.cu"] = "#include <torch/csrc/stable/library.h>\n__global__ void plus() {}\n"
    found = written(tmp_path, files)
    assert found["strategy"]["default"] == "abi3"
    assert "clang compiles universal wheels" in (tmp_path / matrix.FILE).read_text()


TAGGED = {
    "setup.py": """from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
class Tag(bdist_wheel):
    def get_tag(self):
        return "py3", "none", super().get_tag()[2]
setup(name="their_ext", version="0.1", cmdclass={"bdist_wheel": Tag})
""",
    "their_ext/__init__.py": "",
    "their_ext/library.c": "int twice(int n) { return 2 * n; }\n",
}
ASSIGNED = {
    **TAGGED,
    "setup.py": TAGGED["setup.py"].replace(
        'return "py3", "none", super().get_tag()[2]',
        'python, abi = "py3", "none"\n        return python, abi, super().get_tag()[2]',
    ),
}
SCIKIT = {
    **TAGGED,
    "setup.py": "",
    "pyproject.toml": '[project]\nname = "their_ext"\nversion = "0.1"\n[tool.scikit-build]\nwheel.py-api = "py3"\n'
    '[build-system]\nrequires = ["scikit-build-core"]\nbuild-backend = "scikit_build_core.build"\n',
}


@pytest.mark.parametrize("files", [TAGGED, ASSIGNED, SCIKIT])
def test_a_wheel_for_every_python_is_universal_unless_it_is_bound_to_torch(
    files: dict[str, str], tmp_path: Path
) -> None:
    choice = chosen(write(tmp_path, files))
    assert choice.strategy == "universal"
    assert "py3" in choice.reasons["strategy"]
    for bound in ("#include <torch/library.h>\n", "#include <Python.h>\n"):
        assert chosen(write(tmp_path, {"their_ext/library.c": bound})).strategy == "each"


def test_our_own_sources_are_universal() -> None:
    assert chosen(ROOT).strategy == "universal"


def test_a_requirement_with_quotes_is_written_whole(tmp_path: Path) -> None:
    text = 'einops>=0.8; python_version >= "3.9"'
    setup = NO_PROJECT_TABLE["setup.py"].replace(
        'version="0.1"', f"install_requires=[{text!r}, 'torch']"
    )
    assert written(tmp_path, {**NO_PROJECT_TABLE, "setup.py": setup})["verify"]["requires"] == [
        text
    ]


def test_the_comment_of_a_choice_says_what_made_it_so(tmp_path: Path) -> None:
    init(write(tmp_path, LIMITED))
    lines = (tmp_path / matrix.FILE).read_text().splitlines()
    assert (
        'default = "abi3"  # setup.py\'s py_limited_api is cp310, and no source includes pybind11'
        in lines
    )


NOT_ABI3 = {
    "a comment": '# options={"bdist_wheel": {"py_limited_api": "cp310"}}\n',
    "off": 'options={"bdist_wheel": {"py_limited_api": False}}\n',
    "a text": 'text = "py_limited_api = True"\n',
}


@pytest.mark.parametrize("what", NOT_ABI3)
def test_a_limited_api_that_is_not_used_does_not_count(tmp_path: Path, what: str) -> None:
    files = {**LIMITED, "setup.py": NO_PROJECT_TABLE["setup.py"] + NOT_ABI3[what]}
    assert not sources.read(write(tmp_path, files)).limited_api


def test_the_tag_of_an_abi3_wheel_counts(tmp_path: Path) -> None:
    """Every tree-sitter grammar is like this: whether the API is limited depends on the Python that builds."""
    setup = ASSIGNED["setup.py"].replace('"py3", "none"', '"cp310", "abi3"')
    source = {"their_ext/library.c": "#include <Python.h>\n"}
    choice = chosen(write(tmp_path, {**ASSIGNED, **source, "setup.py": setup}))
    assert (choice.strategy, choice.abi3_python) == ("abi3", "3.11")


@pytest.mark.parametrize(("api", "python"), [("cp310", "3.11"), ("cp312", "3.13")])
def test_scikit_builds_limited_api_counts(tmp_path: Path, api: str, python: str) -> None:
    """nanobind has a limited API from Python 3.12 on, so an older Python cannot build it."""
    text = (
        f'[project]\nname = "theirs"\nversion = "1"\n[tool.scikit-build]\nwheel.py-api = "{api}"\n'
    )
    files = {
        "pyproject.toml": text,
        "theirs/__init__.py": "",
        "a.cpp": "#include <nanobind/nanobind.h>",
    }
    found = written(tmp_path, files)
    assert found["strategy"] == {"default": "abi3", "abi3": {"python": python}}
    assert found["python"]["versions"][0] == python


def test_pins_of_torch_and_python_decide(tmp_path: Path) -> None:
    setup = NO_PROJECT_TABLE["setup.py"].replace(
        'version="0.1"',
        'version="0.1", python_requires="==3.11.*", install_requires=["torch>=2.11,<2.13", "einops"]',
    )
    found = written(tmp_path, {**NO_PROJECT_TABLE, "setup.py": setup})
    assert list(found["torch"]) == ["2.11", "2.12"]
    assert found["python"]["versions"] == ["3.11"]
    assert found["verify"]["requires"] == ["einops"]


def test_a_python_that_debian_lacks_is_not_every_python(tmp_path: Path) -> None:
    text = OTHER_IMPORT["pyproject.toml"].replace(">=3.12", "==3.12.*")
    found = written(tmp_path, {**OTHER_IMPORT, "pyproject.toml": text})
    assert found["python"]["versions"] == ["3.12"]


def theirs(line: str) -> dict[str, str]:
    return {**OTHER_IMPORT, "pyproject.toml": f'[project]\nname = "theirs"\n{line}\n'}


REFUSED = {
    "no project": ({}, "no pyproject.toml and no setup.py"),
    "a pure project": (
        {"theirs/__init__.py": "", "pyproject.toml": '[project]\nname = "theirs"\n'},
        "pure Python",
    ),
    "another torch": (
        theirs('dependencies = ["torch<2.8"]'),
        "requires torch<2.8, and this version of wheelyard knows 2.10 to 2.15",
    ),
    "a broken pyproject.toml": (
        {**OTHER_IMPORT, "pyproject.toml": "[project\n"},
        "is not valid TOML",
    ),
    "no specifier": (
        theirs('requires-python = ">=3.9.*"'),
        "requires-python is `>=3.9.*`, which is not a version specifier",
    ),
    "no Python": (theirs('requires-python = "<3.9"'), "requires Python <3.9, and the torches"),
    "no requirement": (
        theirs('dependencies = ["a b"]'),
        "has the requirement `a b`, which pip cannot read",
    ),
    "Rust": (
        {"pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "maturin"\n'},
        "maturin builds it from Rust",
    ),
    "Rust beside Python": (
        {"pyproject.toml": '[build-system]\nrequires = ["setuptools", "setuptools-rust"]\n'},
        "maturin and cibuildwheel make wheels of Rust code",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_started_is_refused_in_words(tmp_path: Path, what: str) -> None:
    files, words = REFUSED[what]
    assert words in refused(tmp_path, files)


def test_the_backend_is_asked_in_a_copy(tmp_path: Path) -> None:
    """This setup.py computes its names, and leaves files beside its sources."""
    setup = "from setuptools import Extension, setup\nopen('left', 'w').close()\nname = ''.join(['the', 'irs'])\n"
    setup += "setup(name=name, version='1', py_modules=['theirs_module'], install_requires=[x for x in ['einops']],"
    setup += " ext_modules=[Extension('_x', ['x.c'])])\n"
    found = written(tmp_path, {"setup.py": setup, "theirs_module.py": "", "x.c": ""})
    assert found["project"] == {"name": "theirs", "import_name": "theirs_module"}
    assert found["verify"]["requires"] == ["einops"]
    assert not (tmp_path / "left").exists()


def test_the_only_package_may_be_no_part_of_the_wheel(tmp_path: Path) -> None:
    """posix_ipc is like this: a module, and beside it a package that setup.py alone imports."""
    setup = "from setuptools import Extension, setup\nsetup(ext_modules=[Extension('theirs', ['x.c'])], packages=[])\n"
    project = '[project]\nname = "theirs"\nversion = "1"\nlicense.text = "deprecated"\n'
    files = {"setup.py": setup, "pyproject.toml": project, "x.c": "", "support/__init__.py": ""}
    assert written(tmp_path, files)["project"]["import_name"] == "theirs"


def test_a_project_is_not_compiled_to_learn_names(tmp_path: Path) -> None:
    """meson-python is like this: it has no hook for the metadata alone."""
    backend = "def build_wheel(*_): open('/tmp/built', 'w')\ndef build_sdist(*_): pass\n"
    backend = backend.replace("/tmp/built", str(tmp_path / "built"))
    project = '[project]\nname = "theirs"\nversion = "1"\n[build-system]\nrequires = []\n'
    project += 'build-backend = "own"\nbackend-path = ["."]\n'
    files = {"pyproject.toml": project, "own.py": backend, "other/__init__.py": "", "x.c": ""}
    assert "own tells them only by a whole build" in " ".join(init(write(tmp_path, files)).split())
    assert not (tmp_path / "built").exists()


def test_tests_inside_the_package_have_a_line_of_the_matrix(tmp_path: Path) -> None:
    """They run only if the wheel contains them, which the files do not tell."""
    inside = {n: t for n, t in NO_PROJECT_TABLE.items() if not n.startswith("test/")}
    said = init(write(tmp_path, {**inside, "their_ext/tests/test_it.py": ""}))
    assert "their_ext/ has tests inside" in " ".join(said.replace("│", " ").split())
    text = (tmp_path / matrix.FILE).read_text()
    line = '# command = "python -m pytest --pyargs their_ext"'
    assert line in text
    (tmp_path / matrix.FILE).write_text(text.replace(line, line.removeprefix("# ")))
    assert planning.load(Options(), tmp_path).test_command.endswith("--pyargs their_ext")


def test_a_project_without_torch_is_told_so(tmp_path: Path) -> None:
    plain = {
        "setup.py": 'from setuptools import setup\nsetup(name="plain", version="1", install_requires=[])\n',
        "plain/__init__.py": "",
        "plain/ops.c": "#include <Python.h>\n",
    }
    assert "nothing in it uses torch" in init(write(tmp_path / "plain", plain))
    assert "nothing in it uses torch" not in init(write(tmp_path / "theirs", NO_PROJECT_TABLE))


def test_a_source_that_uses_both_apis_is_named_once(tmp_path: Path) -> None:
    found = sources.read(write(tmp_path, NO_PROJECT_TABLE))
    found.requires += ["torch>=2.9", "torch>=2.9"]
    reasons = choose(found, tomllib.loads(KNOWN.read_text())).reasons
    assert reasons["strategy"] == (
        "their_ext/csrc/ops.cpp uses pybind11, beyond Python's limited API, and torch's C++ API"
    )
    assert reasons["torch"].startswith("the newest 2 within torch>=2.9;")


EXTRA = '[project.optional-dependencies]\ntest = ["ubelt", "torch", "their_ext[all]"]\n'
GROUP = '[dependency-groups]\ntests = [{include-group = "more"}]\nmore = ["ubelt", {include-group = "tests"}]\n'
SETUP_CFG = "[metadata]\nname = their_ext\n[options.extras_require]\ntest =\n  # own\n  ubelt\n"
SETUP_EXTRA = 'setup(name="their_ext", extras_require={"tests": ["ubelt"]})'
COMPUTED = 'setup(name="their_ext", version="1", extras_require={"testing": "ubelt".split()})'


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({"pyproject.toml": f'[project]\nname = "their_ext"\n{EXTRA}'}, "the extra `test`"),
        ({"pyproject.toml": GROUP}, "the dependency group `tests`"),
        ({"setup.py": f"from setuptools import setup\n{SETUP_EXTRA}"}, "setup.py's extra `tests`"),
        (
            {"pyproject.toml": "", "setup.py": "", "setup.cfg": SETUP_CFG},
            "setup.cfg's extra `test`",
        ),
        (
            {"pyproject.toml": "", "setup.py": f"from setuptools import setup\n{COMPUTED}"},
            "the extra `testing`",
        ),
    ],
)
def test_what_the_tests_need_is_taken_from_an_extra(
    tmp_path: Path, files: dict[str, str], why: str
) -> None:
    init(write(tmp_path, NO_PROJECT_TABLE | files))
    assert f'requires = ["ubelt"]  # {why}\n' in (tmp_path / matrix.FILE).read_text()


def test_setup_requires_is_installed_for_the_build(tmp_path: Path) -> None:
    """setuptools would fetch it, but a build has no network."""
    call = 'setup(name="their_ext", setup_requires=["cffi>=1", "torch"], install_requires=[])'
    files = {"pyproject.toml": "", "setup.py": f"from setuptools import setup\n{call}"}
    init(write(tmp_path, NO_PROJECT_TABLE | files))
    assert planning.load(Options(), tmp_path).matrix.build.requires == ["cffi>=1"]

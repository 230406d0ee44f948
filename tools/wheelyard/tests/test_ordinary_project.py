"""Tests the plan of an ordinary CUDAExtension project: what it may lack, and what each step makes of it.

The project in ordinary/ is planned here; test_tool_release.py releases it.
"""

import dataclasses
import os
import runpy
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from demo_wheel import make_wheel
from recorded import workspace
from repository import write
from wheelyard import steps
from wheelyard.config import matrix as matrix_file
from wheelyard.config.matrix import Toolkit
from wheelyard.core.job import Job, Source
from wheelyard.plan import plan as planning
from wheelyard.plan.plan import Options, Plan
from wheelyard.problem import Problem
from wheelyard.steps import build, gate, install, publish, repair, smoke
from wheelyard.tools import images, index
from wheelyard.tools.index import Index

ORDINARY = Path(__file__).with_name("ordinary")


@pytest.fixture
def ordinary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plan:
    """Returns the project's plan on base debian, with an empty release folder."""
    monkeypatch.setenv("RELEASE_FOLDER", str(tmp_path / "release"))
    return planning.load(Options(base="debian"), ORDINARY)


def with_torch(plan: Plan, **changes: object) -> Plan:
    """Returns the plan with another [torch."2.12"], and no other torch."""
    torch = dataclasses.replace(plan.matrix.torch["2.12"], **changes)  # type: ignore[arg-type]
    return plan.edited(torch={"2.12": torch}, verify={"run": []})


# --- What a project is ----------------------------------------------------------------------------


def test_a_project_need_not_have_a_project_table_nor_a_version(tmp_path: Path) -> None:
    """Everything is in setup.py, which only a build can run: the matrix gives the name, the build the version."""
    (tmp_path / "setup.py").write_text("import torch, setuptools\nsetuptools.setup()\n")
    (tmp_path / "ci").mkdir()
    text = (ORDINARY / "ci/matrix.toml").read_text()
    named = text.replace("[project]\n", '[project]\nname = "Their.Ext"\n')
    (tmp_path / "ci/matrix.toml").write_text(named)
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    plan = planning.load(Options(base="debian"), tmp_path)
    assert (plan.project.name, plan.project.version) == ("Their.Ext", "")
    assert len(build.jobs(plan)) == 5


def test_the_sdist_is_made_beside_torch_and_not_on_the_host(ordinary: Plan) -> None:
    (sdist,) = (j for j in build.jobs(ordinary) if j.unit == "sdist")
    assert sdist.inputs["image"] == images.for_build(ordinary, ordinary.wheels[0])
    assert sdist.needs.engine


def test_what_runs_before_a_build_also_runs_before_the_sdist(
    ordinary: Plan, tmp_path: Path
) -> None:
    """A setup.py that lists its CUDA sources only on a machine with a GPU leaves them out of the sdist too."""
    plan = ordinary.edited(build={"before": "touch {project}/seen # as told"})
    told = {j.unit: j.inputs["before"] for j in build.jobs(plan)}
    assert set(told.values()) == {"touch {project}/seen # as told"}
    script = build.sdist_script("part of/it", told["sdist"])
    (tmp_path / "source/part of/it").mkdir(parents=True)
    here = script.replace("/tmp/source", "COPY").replace("/source", f"{tmp_path}/source")
    here = here.replace("COPY", f"{tmp_path}/copy").partition("python -m build")[0]
    subprocess.run(["sh", "-ec", f"{here} ls"], check=True)
    assert (tmp_path / "copy/part of/it/seen").exists()
    assert not (tmp_path / "source/part of/it/seen").exists()


def test_the_distribution_and_its_module_have_names_of_their_own(
    ordinary: Plan, tmp_path: Path
) -> None:
    assert (ordinary.project.name, ordinary.project.import_name) == ("ordinary-ext", "ordinary")
    for found in install.jobs(ordinary):
        assert found.inputs["project"] == "ordinary-ext"
        assert smoke.words(found.inputs, tmp_path, "/spec") == ["--import-name", "ordinary"]


def test_nothing_but_the_projects_own_files_is_asked_for(ordinary: Plan) -> None:
    """No job needs a lock file, a test list or a source that only wheelyard's own repository has."""
    for found in steps.planned(ordinary).jobs.values():
        for source in (v for v in found.inputs.values() if isinstance(v, Source)):
            assert [path for path in source.files if not (ORDINARY / path).exists()] == []


# --- Images ---------------------------------------------------------------------------------------


def test_the_build_image_has_torch_the_toolkit_of_its_cuda_and_what_the_build_requires(
    ordinary: Plan,
) -> None:
    found = {}
    for wheel in ordinary.wheels:
        recipe = images.for_build(ordinary, wheel)
        told = recipe["arguments"]
        assert recipe["target"] == "native"
        kept = f"torch=={told['TORCH']}"  # torchvision's newest release would replace it
        assert told["REQUIRES"].split("\n") == ["setuptools>=77", "setuptools-scm>=8", kept]
        assert told["PYTHON"] == wheel.python
        found[wheel.torch] = (told["TORCH"], told["CUDA"])
    assert found == {"2.12": ("2.12.1", "13.0"), "2.15": ("2.15.0", "13.2")}


def test_the_verify_image_has_what_the_project_needs_beyond_torch(ordinary: Plan) -> None:
    cell = ordinary.matrix.verify.run[0]
    told = images.for_verify(ordinary, cell, ordinary.machine)["arguments"]
    assert told["REQUIRES"] == f"einops>=0.8\ntorch=={told['TORCH']}"


def test_a_torch_that_pypi_lacks_comes_from_the_index_that_the_matrix_names(
    ordinary: Plan, tmp_path: Path
) -> None:
    elsewhere = with_torch(ordinary, cuda=["13.2"])
    with pytest.raises(Problem, match=r'is cu130, not cu132; take it out.*\n.*"13.2" = "URL"'):
        images.ensure(images.for_build(elsewhere, elsewhere.wheels[0]), workspace(tmp_path, {}))
    url = "https://index.example/cu132"
    named = with_torch(ordinary, cuda=["13.2"], index={"13.2": url})
    recipe = images.for_build(named, named.wheels[0])
    assert (recipe["arguments"]["PIP_INDEX_URL"], recipe["lacks"]) == (url, "")


def with_cuda_12(plan: Plan, toolkits: dict[str, Toolkit], **options: str) -> Plan:
    """Returns the plan for a torch of CUDA 12.6, with these toolkits and no others."""
    old = with_torch(plan, cuda=["12.6"], pypi={plan.machine: "12.6"})
    return old.edited(toolkit=toolkits).asked(**options)


@pytest.mark.parametrize("base", ["auto", "debian"])
def test_cuda_12_is_compiled_by_debians_nvcc(ordinary: Plan, base: str) -> None:
    known = matrix_file.with_known({"torch": {}})["toolkit"]
    toolkits = {name: Toolkit(**facts) for name, facts in known.items()}
    plan = with_cuda_12(ordinary, toolkits, base=base, place="github")
    recipe = images.for_build(plan, plan.wheels[0])
    arguments = recipe["arguments"]
    assert (arguments["CUDA"], arguments["BASE"], recipe["lacks"]) == ("12.4", "debian", "")
    assert plan.targets(plan.wheels[0]).split()[-1] == "9.0+PTX", "nvcc 12.4 knows no newer GPU"


def test_debians_nvcc_is_for_debians_compilers_and_pythons(ordinary: Plan, tmp_path: Path) -> None:
    toolkits = {"12.4": ordinary.matrix.toolkit["13.0"]}
    forced = with_cuda_12(ordinary, toolkits, base="pypa")
    with pytest.raises(Problem, match=r"Debian's nvcc 12\.4 needs --base debian; or name an image"):
        images.ensure(images.for_build(forced, forced.wheels[0]), workspace(tmp_path, {}))
    plan = with_cuda_12(ordinary, toolkits, base="auto", place="github")
    other = dataclasses.replace(plan.wheels[0], python="3.12")
    said = "Debian has the nvcc of CUDA 12.4, but no Python 3.12: name an image with both"
    assert plan.why_not(other) == said


def test_another_nvcc_12_needs_an_image(ordinary: Plan, tmp_path: Path) -> None:
    known = {"12.6": ordinary.matrix.toolkit["13.0"]}
    old = with_cuda_12(ordinary, known)
    with pytest.raises(Problem, match=r'no nvcc of CUDA 12\.6; rename .*"12\.4".*\n.*\n.*image = '):
        images.ensure(images.for_build(old, old.wheels[0]), workspace(tmp_path, {}))
    known = {"12.6": dataclasses.replace(known["12.6"], image="registry.example/builder:cuda12.6")}
    old = with_cuda_12(ordinary, known)
    recipe = images.for_build(old, old.wheels[0])
    assert recipe["bases"] == {"BASE_IMAGE": "registry.example/builder:cuda12.6"}
    assert (recipe["arguments"]["BASE"], recipe["lacks"]) == ("pypa", "")


# --- The toolkit ----------------------------------------------------------------------------------


def test_a_toolkit_gets_the_headers_and_libraries_of_torchs_dependencies(tmp_path: Path) -> None:
    toolkit, packages = tmp_path / "cuda", tmp_path / "nvidia"
    write(toolkit, dict.fromkeys(("include/cuda.h", "lib/libcudart.so.13"), "toolkit"))
    theirs = ("cu13/include/cuda.h", "cu13/include/cublas_v2.h", "cudnn/include/cudnn.h")
    write(packages, dict.fromkeys((*theirs, "cu13/lib/libcublas.so.13"), "torch"))
    runpy.run_path(str(images.FOLDER / "complete_toolkit.py"))["complete"](toolkit, packages)
    assert (toolkit / "include/cuda.h").read_text() == "toolkit"
    assert (toolkit / "include/cublas_v2.h").read_text() == "torch"
    assert (toolkit / "include/cudnn.h").read_text() == "torch"
    assert (toolkit / "lib/libcublas.so").read_text() == "torch"
    assert (toolkit / "lib/libcudart.so").read_text() == "toolkit"


def test_a_library_that_is_loaded_by_its_path_need_not_be_importable(tmp_path: Path) -> None:
    """CMake projects keep one for each torch; a Python module there is still a fault."""
    for name, is_fault in (("lib/libdemo.so", False), ("_C.abi3.so", True)):
        wheel = make_wheel(tmp_path / name, beside=(f"package/torch-2.15/{name}",))
        done = subprocess.run(gate.contents_check(wheel, {}), capture_output=True, text=True)
        assert ("W004: Module is not located at importable path" in done.stdout) == is_fault
        assert "invalid wheel" not in done.stderr


# --- Builds ---------------------------------------------------------------------------------------


def test_wheels_are_built_on_their_own_architecture_once(ordinary: Plan) -> None:
    assert {wheel.arch for wheel in ordinary.all_wheels} == {"x86_64", "aarch64"}
    names = [wheel.name for wheel in ordinary.wheels]
    assert len(names) == len(set(names)) == 4
    assert {wheel.arch for wheel in ordinary.wheels} == {ordinary.machine}
    on_github = ordinary.asked(place="github")
    assert len(on_github.wheels) == 8
    for wheel in on_github.wheels:
        assert images.for_build(on_github, wheel)["machine"] == wheel.arch


def test_a_build_is_told_what_torchs_helpers_look_at(ordinary: Plan) -> None:
    told = build.environment(ordinary, ordinary.wheels[0])
    assert told["CUDA_HOME"] == "/opt/cuda"
    assert told["TORCH_CUDA_ARCH_LIST"] == "9.0"
    assert told["FORCE_CUDA"] == "1"
    assert told["CUDAARCHS"] == "90-real"


def test_cmake_is_told_the_same_targets_as_torchs_helpers() -> None:
    """Without them, a CMake project is compiled for nvcc's oldest GPU alone."""
    assert build.cmake_targets("7.5;9.0a 12.0+PTX") == "75-real;90a-real;120"
    assert build.cmake_targets("Hopper") == build.cmake_targets("") == ""


def test_compilers_at_once_follow_processors_and_memory() -> None:
    assert build.jobs_at_once(1) == len(os.sched_getaffinity(0))
    assert build.jobs_at_once(10**9) == 1


def job(plan: Plan, name: str) -> Job:
    return steps.planned(plan).jobs[name]


def test_a_wheel_is_repaired_where_it_was_built_without_torchs_and_cudas_libraries(
    ordinary: Plan,
) -> None:
    own = {"exclude": ["libmine.so.1"], "graft_from": ["/opt/mine/lib"]}
    plan = ordinary.edited(repair=own)
    wheel = plan.wheels[0]
    (found,) = (j for j in repair.jobs(plan) if j.unit == wheel.name)
    assert found.inputs["image"] == images.for_build(plan, wheel)
    assert {"libtorch*", "libcudart*.so.*", "libmine.so.1"} <= set(found.inputs["exclude"])
    assert found.inputs["graft_from"] == ["/opt/mine/lib"]
    assert found.needs.engine


def test_what_a_release_makes_is_no_source_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Most projects do not ignore wheelhouse/, and some not even build/."""
    monkeypatch.delenv("RELEASE_FOLDER", raising=False)
    shutil.copytree(ORDINARY, tmp_path / "project")
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path / "project", check=True)
    project = planning.load(Options(base="debian"), tmp_path / "project").project
    before = project.files()
    for name in ("build/release/logs/build.log", "wheelhouse/a.whl"):
        (project.root / name).parent.mkdir(parents=True)
        (project.root / name).write_text("made")
    assert "setup.py" in before
    assert project.files() == before


# --- Running --------------------------------------------------------------------------------------


def test_a_smoke_test_need_not_be_written(ordinary: Plan, tmp_path: Path) -> None:
    """Without one the module is imported; a project may give a command, or a list of checks, instead."""
    inputs = smoke.spec(ordinary)
    assert smoke.words(inputs, tmp_path, "/spec") == ["--import-name", "ordinary"]
    own = {**inputs, "smoke": {**inputs["smoke"], "command": "python -m ordinary"}}
    assert smoke.words(own, tmp_path, "/spec")[2:] == ["--command", "python -m ordinary"]


def test_each_wheel_is_run_and_installed_beside_its_own_torch_and_python(ordinary: Plan) -> None:
    wheels = {wheel.name: wheel for wheel in ordinary.wheels}
    seen = []
    for found in [*smoke.jobs(ordinary), *install.jobs(ordinary)]:
        (repaired,) = found.inputs["wheel"].jobs
        wheel = wheels[repaired.removeprefix("repair/")]
        told = found.inputs["image"]["arguments"]
        assert told["PYTHON"] == wheel.python
        assert told["TORCH"] == ordinary.matrix.torch[str(wheel.torch)].release
        seen.append((found.step, told["TORCH"], told["PYTHON"]))
    assert len(seen) == len(set(seen)) == 8


def test_a_python_that_the_base_lacks_is_no_wheel_of_the_plan(ordinary: Plan) -> None:
    pythons = ["3.13", "3.12"]
    torch = dataclasses.replace(ordinary.matrix.torch["2.15"], pythons=pythons)
    plan = ordinary.edited(python={"versions": pythons}, torch={"2.15": torch})
    assert [wheel.python for wheel in plan.wheels] == ["3.13"]
    (without,) = (w for w in plan.all_wheels if w.arch == plan.machine and w not in plan.wheels)
    assert plan.why_not(without) == "Debian has no Python 3.12: use --base pypa"


# --- Publishing and installing --------------------------------------------------------------------


def test_local_versions_do_not_leave_for_pypi(ordinary: Plan) -> None:
    leaving = ordinary.asked(index="pypi")
    with pytest.raises(Problem, match=r"refuses local versions.*--index own"):
        publish.check(leaving, None)  # type: ignore[arg-type]


def test_each_torch_has_an_index_of_its_own_on_any_host(
    new_index: Callable[[str], Index], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host is a real devpi; twine finds name and password as it does for everyone."""
    parts = ["cu130-torch2.12", "cu132-torch2.15"]
    places = {part: new_index(part) for part in [*parts, "all"]}
    monkeypatch.setenv("TWINE_USERNAME", index.USER)
    monkeypatch.setenv("TWINE_PASSWORD", places["all"].password or "")
    base = places["all"].upload.removesuffix("all/")
    own = {"upload": base + "{index}/", "simple": base + "{index}/+simple/"}
    versions = ("1.0+cu130torch2.12", "1.0+cu132torch2.15")
    wheels = [make_wheel(tmp_path, version=version) for version in versions]
    sdist = tmp_path / "state"
    sdist.write_text("stands for the sources")
    space = workspace(
        tmp_path, {"files": wheels, "sdist": [sdist], "needing_evidence": [], "smoke_tests": []},
        index="own", own=own, project="demo_ext", evidence={}, evidence_of_jobs={}, attestations={},
        gpu_evidence=[],
    )  # fmt: skip
    publish.run(Job("publish", "own", None, {}), space)  # type: ignore[arg-type]
    for part, wheel in zip(parts, wheels, strict=True):
        assert list(places[part].files("demo_ext")) == [wheel.name]


def test_an_index_of_ones_own_must_say_where_it_is() -> None:
    with pytest.raises(Problem, match=r"publish\.upload and publish\.simple.*\{index\}"):
        index.named({"upload": "https://host/", "simple": ""})


def taken(name: str, digest: str) -> dict[str, object]:
    archive = {"url": f"https://host/{name}", "archive_info": {"hashes": {"sha256": digest}}}
    return {"metadata": {"name": name.split("-")[0]}, "download_info": archive}


def test_pip_may_take_other_files_too(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path)
    ours = taken(wheel.name, "ab" * 32)
    report = {"install": [taken("einops-0.8.1-py3-none-any.whl", "cd" * 32), ours]}
    install.check_what_pip_took(report, wheel.name, "ab" * 32)
    with pytest.raises(Problem):
        install.check_what_pip_took(report, wheel.name, "ef" * 32)
    with pytest.raises(Problem):
        install.check_what_pip_took({"install": report["install"][:1]}, wheel.name, "ab" * 32)

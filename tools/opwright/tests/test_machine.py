"""What a build may take: memory limits of both cgroup versions, cores, GPUs."""

from pathlib import Path

import pytest
from opwright.build import machine

GIB = 1 << 30


@pytest.fixture
def limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine of 64 cores and 100 GiB free, with no cgroup yet."""
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/meminfo").write_text(f"MemTotal: 1 kB\nMemAvailable: {100 << 20} kB\n")
    (tmp_path / "proc/self/cgroup").write_text("0::/job/step\n")
    monkeypatch.setattr(machine, "PROC", tmp_path / "proc")
    monkeypatch.setattr(machine, "CGROUPS", tmp_path / "cgroup")
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(64)))
    return tmp_path


def write(folder: Path, **files: object) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name.replace("__", ".")).write_text(f"{content}\n")


def test_no_limit(limited: Path):
    write(limited / "cgroup/job/step", memory__max="max", memory__current=GIB, cpu__max="max 100")
    assert machine.free_memory() == 100 * GIB
    assert machine.default_jobs() == 64


def test_version_2_and_a_limit_further_up(limited: Path):
    write(limited / "cgroup/job/step", memory__max="max", memory__current=GIB)
    stat = f"anon 5\ninactive_file {GIB // 2}"
    write(limited / "cgroup/job", memory__max=2 * GIB, memory__current=GIB, memory__stat=stat)
    assert machine.free_memory() == 1.5 * GIB
    assert machine.default_jobs() == 3
    assert machine.default_jobs(threads=4) == 1


def test_version_1(limited: Path):
    (limited / "proc/self/cgroup").write_text("4:memory:/job\n1:cpu,cpuacct:/job\n0::/\n")
    write(
        limited / "cgroup/memory/job",
        memory__limit_in_bytes=2 * GIB,
        memory__usage_in_bytes=GIB,
        memory__stat=f"inactive_file 1\ntotal_inactive_file {GIB // 4}",
    )
    write(limited / "cgroup/cpu,cpuacct/job", cpu__cfs_quota_us=150000, cpu__cfs_period_us=100000)
    assert machine.free_memory() == 1.25 * GIB
    assert machine.cores() == 2
    assert machine.default_jobs() == 2


def test_a_share_of_the_cores(limited: Path):
    write(limited / "cgroup/job/step", cpu__max="400000 100000")
    assert machine.cores() == 4
    assert machine.nvcc_threads(sources=4, passes=5) == 1


@pytest.mark.usefixtures("limited")
def test_threads_for_cores_that_would_idle():
    assert machine.nvcc_threads(sources=4, passes=5) == 5
    assert machine.nvcc_threads(sources=16, passes=5) == 4


def test_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho 9.0; echo 8.0; echo 9.0\n")
    program.chmod(0o755)
    assert machine.gpu_targets() == ["8.0", "9.0"]
    program.write_text("#!/bin/sh\necho no devices were found; exit 6\n")
    assert machine.gpu_targets() == []
    program.unlink()
    if not Path("/usr/bin/nvidia-smi").exists():
        assert machine.gpu_targets() == []

"""Real builds: caches shared by clones, a store that dies, what an edit compiles, little memory."""

import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from clone import build, build_folder, environment, make_clone, objects, start_build
from opwright.build.explain_build import last_build
from opwright.build.library import ENGINE
from opwright.build.toolchain import cuda_home

pytestmark = pytest.mark.skipif(cuda_home() is None, reason="needs nvcc")
needs_ccache = pytest.mark.skipif(not shutil.which("ccache"), reason="needs ccache")
GIB = 1 << 30


@contextmanager
def redis_server(folder: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A real Redis on loopback that keeps nothing on disk: its address and its process."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = ["redis-server", "--bind", "127.0.0.1", "--port", str(port), "--save", ""]
    process = subprocess.Popen([*command, "--dir", str(folder)], stdout=subprocess.DEVNULL)
    try:
        for _ in range(100):
            with socket.socket() as client:
                if client.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield f"redis://127.0.0.1:{port}", process
    finally:
        process.kill()
        process.wait()


def counts(folder: Path) -> dict[str, int]:
    """ccache's counters of the cache in that folder."""
    said = subprocess.check_output(
        ["ccache", "--print-stats"], env=os.environ | {"CCACHE_DIR": str(folder)}, text=True
    )
    return {name: int(value) for name, value in re.findall(r"^(\w+)\t(\d+)$", said, re.MULTILINE)}


@needs_ccache
@pytest.mark.skipif(not shutil.which("redis-server"), reason="needs redis-server")
def test_clones_share_a_store_and_survive_its_end(tmp_path: Path):
    """The second clone compiles nothing; the third's store stops while it builds, and is missed."""
    with redis_server(tmp_path) as (address, server):
        store = {"CCACHE_REMOTE_STORAGE": address}
        first = make_clone(tmp_path / "first")
        build(first, CCACHE_DIR=str(tmp_path / "cache-1"), **store)
        compiles = len(objects(first))
        assert counts(tmp_path / "cache-1")["cache_miss"] == compiles

        second = make_clone(tmp_path / "elsewhere/second")
        build(second, CCACHE_DIR=str(tmp_path / "cache-2"), **store)
        seen = counts(tmp_path / "cache-2")
        assert seen["cache_miss"] == 0
        assert seen["direct_cache_hit"] + seen["preprocessed_cache_hit"] == compiles
        assert any(file.name.endswith(".cu.o") for file in objects(second))
        made = [(build_folder(clone) / "lib").iterdir() for clone in (first, second)]
        assert len({file.read_bytes() for (file,) in made}) == 1

        third = make_clone(tmp_path / "third")
        cache = str(tmp_path / "cache-3")
        running = start_build(third, CCACHE_DIR=cache, MAX_JOBS="1", **store)
        while running.poll() is None and not list(
            third.glob("build/*/CMakeFiles/kernels.dir/**/*.o")
        ):
            time.sleep(0.01)
        server.kill()
        server.wait()
        said, _ = running.communicate()
    assert running.returncode == 0, said
    seen = counts(tmp_path / "cache-3")
    assert seen["direct_cache_hit"] + seen["preprocessed_cache_hit"] >= 1
    assert seen["cache_miss"] >= 1


@needs_ccache
@pytest.mark.skipif(not shutil.which("redis-server"), reason="needs redis-server")
def test_a_store_that_is_full_or_was_never_there(tmp_path: Path):
    """Redis refuses to store anything, then does not answer at all: both builds finish."""
    clone = make_clone(tmp_path / "clone")
    given = {"OPWRIGHT_CUDA": "off"}
    with redis_server(tmp_path) as (address, _):
        given["CCACHE_REMOTE_STORAGE"] = address
        client = ["redis-cli", "-p", address.rpartition(":")[2]]
        subprocess.check_output([*client, "config", "set", "maxmemory", "1"])
        build(clone, "libtorch", CCACHE_DIR=str(tmp_path / "cache-1"), **given)
        assert subprocess.check_output([*client, "dbsize"], text=True).strip() == "0"
    shutil.rmtree(clone / "build")
    build(clone, "libtorch", CCACHE_DIR=str(tmp_path / "cache-2"), **given)
    assert counts(tmp_path / "cache-2")["cache_miss"] == len(objects(clone)) == 1


def includers(clone: Path, header: str) -> set[str]:
    """The files that the library compiles and that include `header`, directly or through others."""
    files = {
        str(file.relative_to(root)): file.read_text()
        for root, folder in (
            (clone, "csrc"),
            (build_folder(clone), "generated"),
            (build_folder(clone), "generated/elementwise"),
            (build_folder(clone), "generated/rows"),
            (ENGINE.parent, "opwright/src"),
            (ENGINE.parent, "opwright/include/opwright"),
            (ENGINE.parent, "opwright/include/opwright/torch"),
        )
        for file in (root / folder).glob("*.*")
    }
    found = {header}
    while True:
        names = "|".join(re.escape(Path(name).name) for name in found)
        include = re.compile(rf'#include "(?:[./\w]*/)?(?:{names})"')
        more = {name for name, text in files.items() if include.search(text)}
        if more <= found:
            return {name for name in found if name.endswith((".cpp", ".cu"))}
        found |= more


def test_an_edit_compiles_what_includes_it(tmp_path: Path):
    """By Ninja's log: a header's includers, one kernel alone, everything for another target."""
    clone = make_clone(tmp_path / "clone")
    cache = {"CCACHE_DIR": os.environ["CCACHE_DIR"]} if "CCACHE_DIR" in os.environ else {}
    build(clone, **cache)
    log = build_folder(clone) / ".ninja_log"
    everything = {step.name for step in last_build(log) if step.name.endswith((".cpp", ".cu"))}

    def compiled_after(name: str, text: str) -> set[str]:
        time.sleep(2.1)  # builds are told apart by when they began
        with (clone / name).open("a") as stream:
            stream.write(text)
        build(clone, **cache)
        return {step.name for step in last_build(log) if step.name.endswith((".cpp", ".cu"))}

    header = "csrc/scale_add.h"
    expected = includers(clone, header)
    assert compiled_after(header, "// edited\n") == expected
    assert 0 < len(expected) < len(everything)
    kernel = "csrc/softsign.cu"
    assert compiled_after(kernel, "// edited\n") == {kernel}

    def steps() -> list[str]:  # but CMake's look at the sources' folder, which every build takes
        return [line for line in log.read_text().splitlines() if "verify_globs" not in line]

    before = steps()
    assert "no work to do" in build(clone, **cache)
    assert steps() == before


def test_other_targets_flags_and_programs(tmp_path: Path):
    """Each compiles again what it changes, without being told."""
    clone = make_clone(tmp_path / "clone")
    build(clone, "kernels", OPWRIGHT_CACHE="off")
    ninja = ["ninja", "-C", build_folder(clone), "-t", "commands", "cuda_kernels"]
    for target, code in (("8.0+PTX", "sm_80,compute_80"), ("9.0", "sm_90")):
        build(clone, "build.ninja", OPWRIGHT_CACHE="off", TORCH_CUDA_ARCH_LIST=target)
        commands = subprocess.check_output(ninja, text=True)
        compiled = re.findall(r".* -c \S+\.cu ", commands)
        assert compiled
        assert all(f"code=[{code}]" in command for command in compiled)

    compiler = tmp_path / "c++"
    compiler.write_text('#!/bin/sh\nexec /usr/bin/c++ "$@"\n')
    compiler.chmod(0o755)
    given = {"OPWRIGHT_CUDA": "off", "CXX": str(compiler), "OPWRIGHT_CACHE": "off"}
    anew = "was made with other compilers, flags or headers: building it anew"
    assert anew in build(clone, "libtorch", **given)
    assert anew not in build(clone, "libtorch", **given)
    compiler.write_text('#!/bin/sh\n\nexec /usr/bin/c++ "$@"\n')
    assert anew in build(clone, "libtorch", **given)
    assert anew in build(clone, "libtorch", **given, CXXFLAGS="-O1")


@contextmanager
def memory_limit(size: int) -> Iterator[Path]:
    """The folder of a cgroup, version 1 or 2, whose processes are killed when they take more."""
    top = Path("/sys/fs/cgroup")
    name = f"wheel-test-{os.getpid()}"
    if (top / "memory").is_dir():
        group, limit = top / "memory" / name, "memory.limit_in_bytes"
    else:
        group, limit = top / name, "memory.max"
    try:
        try:
            group.mkdir()
            (group / limit).write_text(str(size))
        except OSError as error:
            pytest.skip(f"a memory limit cannot be set here: {error}")
        yield group
    finally:
        for _ in range(50):  # its last process may still be going
            if not group.exists():
                break
            with suppress(OSError):
                group.rmdir()
            time.sleep(0.1)


def test_default_jobs_build_within_2_gib(tmp_path: Path):
    clone = make_clone(tmp_path / "clone")
    with memory_limit(2 * GIB) as group:
        ask = "from opwright.build import machine; print('free', machine.free_memory())"
        script = f'echo $$ >{group}/cgroup.procs; python -c "{ask}"; exec python setup.py build_ext'
        done = subprocess.run(
            ["/bin/sh", "-ec", script],
            cwd=clone,
            env=environment(clone, OPWRIGHT_CACHE="off"),
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        free = re.search(r"^free (\d+)$", done.stdout, re.MULTILINE)
        assert free
        assert int(free[1]) <= 2 * GIB

"""`wheelscope env` agrees with the real loader on each module, in the same environment."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest
from program import Scope, compiled, run, save_machine, virtual_environment

SITE = Path(sysconfig.get_path("platlib"))

# Opens each library in a process of its own, after torch where the library needs torch.
ORACLE = """
import ctypes, json, os, sys
libraries = json.load(sys.stdin)
if any(torch for _, torch in libraries):
    plain = os.fork()
    if plain:
        os.waitpid(plain, 0)
        import torch
words = {}
mine = [path for path, torch in libraries if torch == ("torch" in sys.modules)]
for path in mine:
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            ctypes.CDLL(path, os.RTLD_NOW)
            word = ""
        except OSError as error:
            word = str(error)
        os.write(write, word.encode())
        os._exit(0)
    os.close(write)
    print(json.dumps([path, os.fdopen(read).read()]), flush=True)
    os.waitpid(child, 0)
"""


def env(scope: Scope, prefix: Path, code: int | None = None) -> dict[str, Any]:
    return {found["name"]: found for found in scope("env", prefix, code=code)["distributions"]}


def needs_torch(library: Path) -> bool:
    done = subprocess.run(["readelf", "-d", library], capture_output=True, text=True)
    return bool(re.search(r"NEEDED.*\[lib(torch|c10)", done.stdout))


def loaders_words(python: Path, libraries: list[Path]) -> dict[str, str]:
    asked = json.dumps([[str(library), needs_torch(library)] for library in libraries])
    done = subprocess.run(
        [python, "-c", ORACLE], input=asked, capture_output=True, text=True, check=True
    )
    return dict(json.loads(line) for line in done.stdout.splitlines())


def modules_of_this_python() -> list[Path]:
    suffixes = (sysconfig.get_config_var("EXT_SUFFIX"), ".abi3.so")
    return sorted(path for path in SITE.rglob("*.so") if path.name.endswith(suffixes))


@pytest.fixture(scope="module")
def here(scope: Scope) -> dict[str, Any]:
    return env(scope, Path(sys.prefix))


def test_every_module_here_loads_as_the_loader_says(here: dict[str, Any]) -> None:
    modules = modules_of_this_python()
    assert len(modules) > 20
    words = loaders_words(Path(sys.executable), modules)
    broken = {
        library["path"]: library
        for distribution in here.values()
        for library in distribution["broken"]
    }
    wrong = []
    for path, word in words.items():
        ours = broken.get(path, {"loads": "yes"})
        if (ours["loads"] != "yes") != bool(word):
            wrong.append((path, ours["loads"], word))
        elif word:
            # Both stop at the same library or symbol.
            explanation = ours["explanation"]
            assert (explanation["needs"] or explanation["symbol"]) in word
    assert not wrong


def test_requirements_are_those_that_pip_check_finds(here: dict[str, Any]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pip", "check"], capture_output=True, text=True
    ).stdout
    unhappy = {
        line.split()[0].lower().replace("_", "-")
        for line in done.splitlines()
        if " has requirement " in line or " requires " in line
    }
    ours = {name for name, distribution in here.items() if distribution["unmet"]}
    assert ours == {name for name in unhappy if name in here}


MODULE = (
    "void *PyModule_Create2(void *, int); void *PyInit__C(void) { return PyModule_Create2(0, 0); }"
)


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    return virtual_environment(tmp_path / "env")


def site_of(prefix: Path) -> Path:
    return next(prefix.glob("lib/python3*/site-packages"))


def install(prefix: Path, name: str, *metadata: str) -> None:
    """Records the files of a folder of site-packages as a distribution."""
    site = site_of(prefix)
    info = site / f"{name}-1.0.dist-info"
    info.mkdir()
    files = [path.relative_to(site) for path in (site / name).rglob("*") if path.is_file()]
    (info / "RECORD").write_text("".join(f"{path},,\n" for path in files))
    lines = ["Metadata-Version: 2.1", f"Name: {name}", "Version: 1.0", *metadata]
    (info / "METADATA").write_text("\n".join(lines) + "\n")


def test_a_made_environment(scope: Scope, environment: Path) -> None:
    """One distribution for each way to break, each confirmed by the real loader."""
    site = site_of(environment)
    helper = "int helper(void) { return 1; }"
    uses = MODULE + " int helper(void); int f(void) { return helper(); }"
    # sound: the library is where RUNPATH leads
    inside = compiled(site / "sound/libs/libinside.so.1", helper, "-Wl,-soname,libinside.so.1")
    compiled(site / "sound/_C.so", uses, inside, "-Wl,-rpath,$ORIGIN/libs")
    # lost: it exists, but no RUNPATH leads to it
    hidden = compiled(site / "lost/libs/libhidden.so.1", helper, "-Wl,-soname,libhidden.so.1")
    compiled(site / "lost/_C.so", uses, hidden)
    # absent: it was removed after linking
    gone = compiled(site / "absent/libgone.so.1", helper, "-Wl,-soname,libgone.so.1")
    compiled(site / "absent/_C.so", uses, gone, "-Wl,-rpath,$ORIGIN")
    gone.unlink()
    # symbol: nobody has it
    compiled(site / "symbol/_C.so", uses)
    # version: the library lost a version after linking
    script = site / "script.map"
    script.write_text("V_1 { global: helper; };")
    versioned = compiled(
        site / "version/libv.so.1",
        helper,
        "-Wl,-soname,libv.so.1",
        f"-Wl,--version-script={script}",
    )
    compiled(site / "version/_C.so", uses, versioned, "-Wl,-rpath,$ORIGIN")
    script.write_text("V_0 { global: helper; };")
    compiled(versioned, helper, "-Wl,-soname,libv.so.1", f"-Wl,--version-script={script}")
    expected = {
        "sound": ("yes", None, None),
        "lost": ("depends", "missing-library", "libhidden.so.1"),
        "absent": ("no", "missing-library", "libgone.so.1"),
        "symbol": ("no", "undefined-symbol", "helper"),
        "version": ("no", "missing-version", "V_1"),
    }
    for name in expected:
        install(environment, name)
    found = env(scope, environment, code=1)
    python = environment / "bin/python"
    words = loaders_words(python, [site / name / "_C.so" for name in expected])
    assert found.keys() == expected.keys()
    for name, (loads, kind, part) in expected.items():
        word = words[str(site / name / "_C.so")]
        assert found[name]["loads"] == loads
        assert bool(word) == (loads != "yes")
        if kind:
            (broken,) = found[name]["broken"]
            assert broken["explanation"]["kind"] == kind
            assert part in broken["explanation"]["message"]
            assert part in word
    text = run("env", environment, code=1).stdout
    assert "symbol 1.0  does not load" in text
    assert "lost 1.0  depends on Python code" in text
    assert "undefined symbol: helper" in text
    assert "5 distributions" in text
    assert "1 sound" in text


def test_requirements(scope: Scope, environment: Path) -> None:
    site = site_of(environment)
    for name in ("first", "second"):
        compiled(site / name / "_C.so", MODULE)
    install(environment, "first", "Requires-Dist: second<1", "Requires-Dist: none; extra == 'x'")
    install(environment, "second", "Requires-Dist: absent>=2", "Requires-Python: <3")
    found = env(scope, environment, code=1)
    assert found["first"]["unmet"] == ["requires second<1; installed is 1.0"]
    assert found["second"]["unmet"][0] == "requires absent>=2, which is not installed"
    assert found["second"]["unmet"][1].startswith("requires Python <3; this is 3.")


def test_modules_for_another_python_are_not_opened(scope: Scope, environment: Path) -> None:
    site = site_of(environment)
    compiled(
        site / "several/_C.cpython-27-x86_64-linux-gnu.so",
        "int PyInit__C(void) { extern int no(void); return no(); }",
    )
    compiled(site / "several/_C.so", MODULE)
    install(environment, "several")
    assert env(scope, environment, code=0)["several"]["opened"] == 1


def test_half_written_and_broken_files(scope: Scope, environment: Path) -> None:
    site = site_of(environment)
    compiled(site / "whole/_C.so", MODULE)
    install(environment, "whole")
    (site / "half").mkdir()
    (site / "half/_C.so").write_bytes((site / "whole/_C.so").read_bytes()[:100])
    (site / "half/loop.so").symlink_to(site / "half/loop.so")
    (site / "half/absent.so").symlink_to("/nonexistent")
    install(environment, "half")
    (site / "no_record-1.0.dist-info").mkdir()
    (site / "file-1.0.dist-info").write_text("a file where a folder should be")
    found = env(scope, environment, code=1)
    assert found["whole"]["loads"] == "yes"
    assert found["half"]["loads"] == "no"


def searched(output: str, name: str) -> list[str]:
    """Returns the files that ld.so tried for a library, from LD_DEBUG=libs."""
    block = output.partition(f"find library={name} ")[2].partition("find library=")[0]
    return re.findall(r"trying file=(\S+)", block)


def test_why_follows_the_loader_folder_by_folder(scope: Scope, environment: Path) -> None:
    site = site_of(environment)
    folders = [site / "pkg" / name for name in ("one", "two", "three")]
    for folder in folders:
        folder.mkdir(parents=True)
    target = compiled(
        folders[1] / "libx.so.1", "int helper(void) { return 1; }", "-Wl,-soname,libx.so.1"
    )
    shutil.copy(target, folders[2])
    paths = ":".join(f"$ORIGIN/{folder.name}" for folder in folders)
    compiled(
        site / "pkg/_C.so",
        MODULE + " int helper(void); int f(void) { return helper(); }",
        target,
        f"-Wl,-rpath,{paths}",
    )
    install(environment, "pkg")
    (search,) = scope("env", environment, "--why", "libx.so.1")["searches"]
    code = f"import ctypes; ctypes.CDLL({str(site / 'pkg/_C.so')!r})"
    done = subprocess.run(
        [environment / "bin/python", "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "LD_DEBUG": "libs"},
    )
    # ld.so also tries folders for special hardware below each, which are ignored here.
    tried = [path for path in searched(done.stderr, "libx.so.1") if Path(path).parent in folders]
    assert [os.path.normpath(step["path"]) for step in search["steps"]] == [
        os.path.normpath(path) for path in tried
    ]
    assert search["found"] == search["steps"][-1]["path"]
    text = run("env", environment, "--why", "libx.so.1").stdout
    assert "absent" in text
    assert "RUNPATH of" in text
    none = run("env", environment, "--why", "liby.so", code=1)
    assert "nothing that Python opens" in none.stderr
    shutil.rmtree(site / "pkg/two")
    shutil.rmtree(site / "pkg/three")
    assert "found nowhere" in run("env", environment, "--why", "libx.so.1", code=None).stdout


@pytest.mark.usefixtures("scope")
def test_no_environment(tmp_path: Path) -> None:
    assert "no Python environment" in run("env", tmp_path, code=3).stderr


@pytest.mark.skipif(
    any(Path("/usr/lib").glob("*/libcuda.so.1")), reason="this machine has a driver"
)
def test_the_driver_of_another_machine_counts(
    scope: Scope, environment: Path, tmp_path: Path
) -> None:
    stub = compiled(
        tmp_path / "libcuda.so.1", "int cuInit(int f) { return 0; }", "-Wl,-soname,libcuda.so.1"
    )
    uses = "int cuInit(int); void *PyInit_gpu(void) { cuInit(0); return 0; }"
    compiled(site_of(environment) / "gpu/gpu.so", uses, stub)
    install(environment, "gpu")
    assert env(scope, environment, code=1)["gpu"]["loads"] == "no"
    for driver, code, loads in (("580.65.06", 0, "yes"), (None, 1, "no")):
        prefix = {"prefix": str(environment)}
        node = save_machine(tmp_path / "node.json", prefix, driver=driver)
        for words in ([environment], []):
            [there] = scope("env", *words, "--machine", node, code=code)["distributions"]
            assert there["loads"] == loads

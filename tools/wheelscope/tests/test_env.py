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
from program import compiled, install, run, save_machine, scope, site_of

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


def env(prefix: Path, code: int | None = None) -> dict[str, Any]:
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
def here() -> dict[str, Any]:
    return env(Path(sys.prefix))


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
HELPER = "int helper(void) { return 1; }"
USES_HELPER = MODULE + " int helper(void); int f(void) { return helper(); }"


def package(
    prefix: Path, name: str, text: str = "", module: str | None = MODULE, *flags: str | Path
) -> Path:
    """Installs a package with this __init__.py and a module _C of this source; returns its folder."""
    folder = site_of(prefix) / name
    folder.mkdir(exist_ok=True)
    (folder / "__init__.py").write_text(text)
    if module:
        compiled(folder / "_C.so", module, "-Wl,-z,now", *flags)
    install(prefix, name)
    return folder


def loads(found: dict[str, Any]) -> dict[str, str]:
    return {name: one["loads"] for name, one in found.items()}


def test_a_made_environment(bare: Path) -> None:
    """One distribution for each way to break, each confirmed by the real loader."""
    site = site_of(bare)

    def library(path: str, *flags: str) -> Path:
        soname = f"-Wl,-soname,{Path(path).name}"
        return compiled(site / path, HELPER, soname, *flags)

    def module(name: str, *flags: str | Path) -> None:
        compiled(site / name / "_C.so", USES_HELPER, *flags)

    module("sound", library("sound/libs/libinside.so.1"), "-Wl,-rpath,$ORIGIN/libs")
    module("lost", library("lost/libs/libhidden.so.1"))  # no RUNPATH leads there
    gone = library("absent/libgone.so.1")
    module("absent", gone, "-Wl,-rpath,$ORIGIN")
    gone.unlink()
    module("symbol")  # nobody has it
    script = site / "script.map"
    for version in ("V_1", "V_0"):  # lost after linking
        script.write_text(f"{version} {{ global: helper; }};")
        versioned = library("version/libv.so.1", f"-Wl,--version-script={script}")
        if version == "V_1":
            module("version", versioned, "-Wl,-rpath,$ORIGIN")
    expected = {
        "sound": ("yes", None, None),
        "lost": ("depends", "missing-library", "libhidden.so.1"),
        "absent": ("no", "missing-library", "libgone.so.1"),
        "symbol": ("no", "undefined-symbol", "helper"),
        "version": ("no", "missing-version", "V_1"),
    }
    for name in expected:
        install(bare, name)
    found = env(bare, code=1)
    words = loaders_words(bare / "bin/python", [site / name / "_C.so" for name in expected])
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
    text = run("env", bare, code=1).stdout
    for part in (
        "symbol 1.0  does not load",
        "lost 1.0  depends on Python code",
        "undefined symbol: helper",
        "5 distributions",
        "1 sound",
    ):
        assert part in text


def test_requirements(bare: Path) -> None:
    for name, requires in {
        "first": "Requires-Dist: second<1\nRequires-Dist: none; extra == 'x'\n",
        "second": "Requires-Dist: absent>=2\nRequires-Python: <3\n",
    }.items():
        compiled(site_of(bare) / name / "_C.so", MODULE)
        install(bare, name, metadata=requires)
    found = env(bare, code=1)
    assert found["first"]["unmet"] == ["requires second<1; installed is 1.0"]
    assert found["second"]["unmet"][0] == "requires absent>=2, which is not installed"
    assert found["second"]["unmet"][1].startswith("requires Python <3; this is 3.")


def test_modules_for_another_python_are_not_opened(bare: Path) -> None:
    folder = site_of(bare) / "several"
    broken = "int PyInit__C(void) { extern int no(void); return no(); }"
    compiled(folder / "_C.cpython-27-x86_64-linux-gnu.so", broken)
    package(bare, "several")
    assert env(bare, code=0)["several"]["opened"] == 1


def test_half_written_and_broken_files(bare: Path) -> None:
    whole = package(bare, "whole")
    site = whole.parent
    (site / "half").mkdir()
    (site / "half/_C.so").write_bytes((whole / "_C.so").read_bytes()[:100])
    (site / "half/loop.so").symlink_to(site / "half/loop.so")
    (site / "half/absent.so").symlink_to("/nonexistent")
    install(bare, "half")
    (site / "no_record-1.0.dist-info").mkdir()
    (site / "file-1.0.dist-info").write_text("a file where a folder should be")
    assert loads(env(bare, code=1)) == {"half": "no", "whole": "yes"}


def test_why_follows_the_loader_folder_by_folder(bare: Path) -> None:
    folders = [site_of(bare) / "pkg" / name for name in ("one", "two", "three")]
    for folder in folders:
        folder.mkdir(parents=True)
    target = compiled(folders[1] / "libx.so.1", HELPER, "-Wl,-soname,libx.so.1")
    shutil.copy(target, folders[2])
    paths = ":".join(f"$ORIGIN/{folder.name}" for folder in folders)
    module = package(bare, "pkg", "", USES_HELPER, target, f"-Wl,-rpath,{paths}") / "_C.so"
    (search,) = scope("env", bare, "--why", "libx.so.1")["searches"]
    words = [bare / "bin/python", "-c", f"import ctypes; ctypes.CDLL({str(module)!r})"]
    debug = {**os.environ, "LD_DEBUG": "libs"}
    said = subprocess.run(words, capture_output=True, text=True, env=debug).stderr
    block = said.partition("find library=libx.so.1 ")[2].partition("find library=")[0]
    # ld.so also tries folders for special hardware below each, which are ignored here.
    tried = [path for path in re.findall("trying file=(.+)", block) if Path(path).parent in folders]
    assert [os.path.normpath(step["path"]) for step in search["steps"]] == [
        os.path.normpath(path) for path in tried
    ]
    assert search["found"] == search["steps"][-1]["path"]
    text = run("env", bare, "--why", "libx.so.1").stdout
    assert "absent" in text
    assert "RUNPATH of" in text
    none = run("env", bare, "--why", "liby.so", code=1)
    assert "nothing that Python opens" in none.stderr
    for folder in folders[1:]:
        shutil.rmtree(folder)
    assert "found nowhere" in run("env", bare, "--why", "libx.so.1", code=None).stdout


def test_no_environment(tmp_path: Path) -> None:
    assert "no Python environment" in run("env", tmp_path, code=3).stderr


@pytest.mark.skipif(
    any(Path("/usr/lib").glob("*/libcuda.so.1")), reason="this machine has a driver"
)
def test_the_driver_of_another_machine_counts(bare: Path, tmp_path: Path) -> None:
    soname = "-Wl,-soname,libcuda.so.1"
    stub = compiled(tmp_path / "libcuda.so.1", "int cuInit(int f) { return 0; }", soname)
    uses = "int cuInit(int); void *PyInit_gpu(void) { cuInit(0); return 0; }"
    compiled(site_of(bare) / "gpu/gpu.so", uses, stub)
    install(bare, "gpu")
    assert env(bare, code=1)["gpu"]["loads"] == "no"
    for driver, code, loads in (("580.65.06", 0, "yes"), (None, 1, "no")):
        node = save_machine(tmp_path / "node.json", {"prefix": str(bare)}, driver=driver)
        for words in ([bare], []):
            [there] = scope("env", *words, "--machine", node, code=code)["distributions"]
            assert there["loads"] == loads

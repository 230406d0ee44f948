"""`wheelscope machine` says about an interpreter what that interpreter says about itself."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from program import PROGRAM, run, run_json, save_machine, scope, virtual_environment

# Run by an interpreter. Its own packaging may be old or missing, so ours is put on its path.
QUESTION = """
import json, os, platform, site, sys, sysconfig
sys.path.append({packaging!r})
try:
    from packaging import tags
    tags = [str(tag) for tag in tags.sys_tags()]
except Exception:
    if sys.version_info >= (3, 9):  # packaging supports no older ones
        raise
    tags = None
folders = list(site.getsitepackages())
if site.ENABLE_USER_SITE:
    folders.insert(0, site.getusersitepackages())
print(json.dumps(dict(
    version=platform.python_version(),
    soabi=sysconfig.get_config_var("SOABI"),
    prefix=sys.prefix,
    base_prefix=sys.base_prefix,
    libc=os.confstr("CS_GNU_LIBC_VERSION").split(),  # what platform.libc_ver asks since 3.8
    machine=platform.machine(),
    tags=tags,
    folders=folders,
)))
"""


def own_words(python: Path) -> Any:
    """Returns what the interpreter says about itself."""
    import packaging

    folder = Path(packaging.__file__).parents[1]
    code = QUESTION.format(packaging=str(folder))
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def pyenv_interpreters() -> list[Path]:
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    return sorted(versions.glob("3.*/bin/python3"))


INTERPRETERS = [Path(sys.executable), *pyenv_interpreters()]
if Path("/usr/bin/python3").exists():
    INTERPRETERS.append(Path("/usr/bin/python3"))


def machine(python: Path | str) -> Any:
    return scope("machine", "--python", str(python))["machine"]


def same_folders(ours: list[str], theirs: list[str]) -> None:
    existing = [os.path.realpath(folder) for folder in theirs if Path(folder).is_dir()]
    assert [os.path.realpath(folder) for folder in ours] == list(dict.fromkeys(existing))


def compare(facts: Any, words: Any) -> None:
    python = facts["python"]
    assert python["version"] == words["version"]
    assert python["abi"] == "cp" + words["soabi"].split("-")[1]
    assert os.path.realpath(python["prefix"]) == os.path.realpath(words["prefix"])
    assert os.path.realpath(python["base_prefix"]) == os.path.realpath(words["base_prefix"])
    assert [facts["libc"], facts["libc_version"]] == words["libc"]
    assert facts["architecture"] == python["architecture"] == words["machine"]
    if words["tags"] is not None:
        assert python["tags"] == words["tags"]
    same_folders(python["site_packages"], words["folders"])


@pytest.mark.parametrize("python", INTERPRETERS, ids=str)
def test_interpreter(python: Path) -> None:
    compare(machine(python), own_words(python))


@pytest.mark.parametrize("options", [[], ["--system-site-packages"], ["--copies"]], ids=str)
@pytest.mark.parametrize("name", ["python", "python3"])
def test_virtual_environment(tmp_path: Path, options: list[str], name: str) -> None:
    environment = virtual_environment(tmp_path / "env", *options)
    words = own_words(environment / "bin" / name)
    compare(machine(environment / "bin" / name), words)
    compare(machine(environment), words)


def facts_with(**variables: str) -> Any:
    """Returns the machine as seen with other variables."""
    environment = {key: value for key, value in os.environ.items() if key != "VIRTUAL_ENV"}
    return json.loads(run("machine", "--json", env={**environment, **variables}).stdout)["machine"]


def test_the_active_environment_comes_first() -> None:
    assert facts_with(VIRTUAL_ENV=sys.prefix)["python"]["prefix"] == sys.prefix


GPUS = [{"name": "GH200", "capability": "9.0"}, {"name": "unknown", "capability": None}]
TORCH = {"path": "/t", "version": "2.4.0", "cuda": None, "rocm": None, "cxx11_abi": False}
RUNTIME = {"name": "libcudart.so.13", "path": "/l", "distribution": "d", "version": "13.0"}
NOTHING = dict.fromkeys(("libc", "libc_version", "driver", "python", "torch"))


def test_what_is_printed_and_saved(tmp_path: Path) -> None:
    facts = {"driver": "580.65.06", "gpus": GPUS, "torch": TORCH, "cuda_libraries": [RUNTIME]}
    saved = save_machine(tmp_path / "machine.json", notes=["a note"], **facts)
    empty = json.loads(saved.read_text())
    empty["machine"] |= {**NOTHING, "gpus": [], "cuda_libraries": [], "notes": []}
    text = run("machine", "--machine", saved).stdout
    for part in (
        "C library",
        "GH200, compute capability 9.0",
        "unknown, compute capability unknown",
        "2.4.0, CPU build, C++ ABI from before C++11",
        "libcudart.so.13",
        "a note",
    ):
        assert part in text
    for document in (json.loads(saved.read_text()), empty):
        saved.write_text(json.dumps(document))
        assert run_json("machine", "--machine", saved) == document
    run("machine", "--machine", "/bin/ls", code=3)


def test_torch_and_its_cuda() -> None:
    torch = pytest.importorskip("torch")
    facts = machine(sys.executable)
    assert facts["torch"]["version"] == torch.__version__
    assert facts["torch"]["cuda"] == torch.version.cuda
    assert facts["torch"]["cxx11_abi"] == torch._C._GLIBCXX_USE_CXX11_ABI
    assert facts["torch"]["path"] == str(Path(torch.__file__).parent)
    if torch.version.cuda and facts["cuda_libraries"]:
        major = torch.version.cuda.split(".")[0]
        runtime = next(
            library
            for library in facts["cuda_libraries"]
            if library["name"] == f"libcudart.so.{major}"
        )
        assert Path(runtime["path"]).exists()
        assert runtime["distribution"].startswith("nvidia-cuda-runtime")
        assert runtime["version"].startswith(torch.version.cuda)


def test_no_python_is_started(tmp_path: Path) -> None:
    """strace sees every started program: only ours, if there is no driver."""
    strace = "/usr/bin/strace"
    if not Path(strace).exists():
        pytest.skip("needs strace")
    trace = tmp_path / "trace"
    command = [strace, "-f", "-e", "trace=execve,execveat", "-o", trace]
    subprocess.run(
        [*command, PROGRAM, "machine", "--python", sys.executable], check=True, capture_output=True
    )
    started = [line for line in trace.read_text().splitlines() if "= 0" in line]
    assert all("wheelscope" in line or "nvidia-smi" in line for line in started)
    assert started


def test_what_is_no_interpreter(tmp_path: Path) -> None:
    script = tmp_path / "python3"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    empty = tmp_path / "empty"
    empty.mkdir()
    for given, message in [
        (script, "is no ELF program"),
        (empty, "it is no Python environment"),
        (tmp_path / "absent", "there is no such program"),
        ("no-such-python", "no such program on PATH"),
        ("/bin/ls", "is no Python interpreter"),
    ]:
        assert message in run("machine", "--python", given, code=3).stderr, given
    run("machine", "--python", "python3", "--machine", "x", code=2)


def test_a_machine_without_python(tmp_path: Path) -> None:
    facts = facts_with(PATH=str(tmp_path))
    assert facts["python"] is None
    assert facts["libc"] in ("glibc", "musl")
    assert any("--python" in note for note in facts["notes"])

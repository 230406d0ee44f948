"""setup.py of an extension: what is built is chosen, said, and never guessed."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import opwright
import pytest
from clone import make_clone
from opwright.build import library

ENGINE = Path(opwright.__file__).parents[1]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's sources: no build folder, no library."""
    return make_clone(tmp_path_factory.mktemp("source") / "demo")


def setup_py(source: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("CUDA", "OPWRIGHT")) and name not in ("TORCH_CUDA_ARCH_LIST", "CXX")
    }
    # The compiler of this environment, and no nvcc: what is found must be what a test gives.
    clean["PATH"] = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    return subprocess.run(
        [sys.executable, "setup.py", *arguments],
        cwd=source,
        env=clean | environment,
        capture_output=True,
        text=True,
    )


def refused(source: Path, **environment: str) -> str:
    done = setup_py(source, "build_ext", **environment)
    assert done.returncode != 0
    return done.stderr.splitlines()[-1]


def test_cuda_on_without_a_compiler_fails_loudly(source: Path, tmp_path: Path):
    assert refused(source, OPWRIGHT_CUDA="on", CUDA_HOME=str(tmp_path)) == (
        "error: OPWRIGHT_CUDA=on, but there is no CUDA compiler: "
        f"{tmp_path}/bin/nvcc does not exist; set CUDA_HOME"
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [("OPWRIGHT_CUDA", "yes"), ("OPWRIGHT_COMPILER", "gcc"), ("OPWRIGHT_TARGET", "riscv64")],
)
def test_a_choice_that_does_not_exist(source: Path, name: str, value: str):
    assert f"error: {name}='{value}' is none of " in refused(source, **{name: value})


def test_a_compiler_that_does_not_exist(source: Path, tmp_path: Path):
    assert refused(source, OPWRIGHT_CUDA="off", CXX="no-such-c++ -m64") == (
        "error: CXX names no-such-c++, which is not on PATH; install it, or unset CXX"
    )
    assert refused(source, OPWRIGHT_CUDA="off", PATH=str(tmp_path)) == (
        "error: no C++ compiler is on PATH; apt-get install g++, or name one by CXX"
    )
    clang = {"OPWRIGHT_COMPILER": "clang", "PATH": str(tmp_path)}
    assert refused(source, OPWRIGHT_CUDA="off", **clang) == (
        "error: no C++ compiler is on PATH; apt-get install clang, or name one by CXX"
    )


def test_a_compiler_newer_than_nvcc_supports(source: Path, tmp_path: Path):
    for file, text in {
        "bin/nvcc": "#!/bin/sh\n",
        "bin/c++": '#!/bin/sh\necho "c++ (Debian 16.1.0-3) 16.1.0"\n',
        "include/cuda_runtime_api.h": "#define CUDART_VERSION  13000\n",
        "include/crt/host_config.h": "#error -- gcc versions later than 15 are not supported!\n",
    }.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text)
        (tmp_path / file).chmod(0o755)
    given = {"CUDA_HOME": str(tmp_path), "PATH": str(tmp_path / "bin")}
    assert refused(source, TORCH_CUDA_ARCH_LIST="8.0", **given) == (
        "error: c++ is newer than this nvcc supports; sudo apt-get install g++-15, or set OPWRIGHT_CUDA=off to build "
        "without GPU code"
    )


@pytest.mark.parametrize("character", library.UNUSABLE)
def test_a_path_that_cmake_cannot_build_in(tmp_path: Path, character: str):
    clone = make_clone(tmp_path / f"a{character}b")
    done = setup_py(clone, "build_ext", OPWRIGHT_CUDA="off")
    assert done.returncode != 0
    assert f"error: CMake cannot build with {character!r} in a path" in done.stderr


def test_without_torch(source: Path):
    done = subprocess.run(
        [sys.executable, "-S", "setup.py", "build_ext"],
        cwd=source,
        env=os.environ | {"PYTHONPATH": setuptools_alone(source)},
        capture_output=True,
        text=True,
    )
    assert "torch is not installed, and its headers are needed" in done.stderr


def test_without_what_the_build_needs(source: Path, tmp_path: Path):
    """`pip install . --no-build-isolation` where setuptools is as old as Debian 12's."""
    old = tmp_path / "setuptools"
    (old / "command").mkdir(parents=True)
    (old / "__init__.py").write_text("Command = Extension = setup = None\n")
    (old / "command/__init__.py").touch()
    done = subprocess.run(
        [sys.executable, "-S", "setup.py", "bdist_wheel"],
        cwd=source,
        env=os.environ | {"PYTHONPATH": f"{tmp_path}:{ENGINE}"},
        capture_output=True,
        text=True,
    )
    assert done.stderr.startswith("error: this Python's setuptools is older than 80")
    assert "`pip install 'setuptools>=80' opwright torch`" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_torch_for_amd(source: Path, tmp_path: Path):
    headers = tmp_path / "torch/include/torch/csrc/stable"
    headers.mkdir(parents=True)
    (headers / "library.h").touch()
    (tmp_path / "torch/__init__.py").touch()
    (tmp_path / "torch/version.py").write_text("hip: Optional[str] = '7.2.26015'\n")
    message = refused(source, PYTHONPATH=str(tmp_path), OPWRIGHT_CUDA="on")
    assert message.startswith("error: the torch here is a ROCm build")
    assert message.endswith("OPWRIGHT_CUDA=off builds the ops for the CPU")


def setuptools_alone(folder: Path) -> str:
    """A path on which setuptools and opwright are the only packages."""
    import setuptools

    site = folder / "only-setuptools"
    site.mkdir(exist_ok=True)
    for name in ("setuptools", "_distutils_hack"):
        if not (site / name).exists():
            (site / name).symlink_to(Path(setuptools.__file__).parent.parent / name)
    return f"{site}:{ENGINE}"


def test_wheel_without_cuda(source: Path, tmp_path: Path):
    """auto: no compiler is found, the build says so, and the wheel works without GPU code."""
    done = setup_py(source, "bdist_wheel", "--dist-dir", str(tmp_path), CUDA_HOME=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "CUDA: off, as there is no CUDA compiler" in done.stdout
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name.split("-")[2:4] == ["py3", "none"]
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    check = (
        "import torch, demo_ext as d\n"
        "assert d.build_info()['cuda'] is None and d.build_info()['sass'] == []\n"
        "assert d.scale_add(torch.ones(2), torch.ones(2), 2.0).tolist() == [3, 3]\n"
        # CPU tensors handed to the CUDA implementation: all that a machine without a GPU can do
        "cuda = torch._C.DispatchKeySet(torch._C.DispatchKey.CUDA)\n"
        "try:\n"
        "    op = torch.ops.demo_ext.scale_add.default\n"
        "    op.redispatch(cuda, torch.ones(2), torch.ones(2), 2.0)\n"
        "except RuntimeError as error:\n"
        "    print(error)\n"
    )
    said = subprocess.check_output(
        [sys.executable, "-c", check],
        text=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path / "site")},
    )
    assert said.startswith("scale_add: this build of demo_ext has no CUDA code; install a")

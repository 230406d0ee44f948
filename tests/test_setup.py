"""setup.py: what is built is chosen, said, and never guessed; and what is built is whole."""

import os
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import opwright
import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent
ENGINE = Path(opwright.__file__).parents[1]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tracked files: no build folder, no library."""
    copy = tmp_path_factory.mktemp("source")
    listed = subprocess.check_output(["git", "ls-files", "-z", "--cached"], cwd=ROOT, text=True)
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file() and not name.startswith(("tools/", "tests/", "docs/")):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            (copy / name).write_bytes((ROOT / name).read_bytes())
    return copy


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


def test_a_target_that_is_none(source: Path, tmp_path: Path):
    home = tmp_path / "cuda"
    (home / "bin").mkdir(parents=True)
    (home / "bin/nvcc").touch()
    done = setup_py(
        source,
        "build_ext",
        OPWRIGHT_CUDA="on",
        CUDA_HOME=str(home),
        TORCH_CUDA_ARCH_LIST="8.0;hopper",
    )
    assert done.returncode != 0
    assert "'hopper' is not a GPU target; write targets as TORCH_CUDA_ARCH_LIST does" in done.stderr


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
        "import torch, cuda_ext_example as c\n"
        "assert c.build_info()['cuda'] is None and c.build_info()['sass'] == []\n"
        "assert c.my_add(torch.ones(2), torch.ones(2)).tolist() == [2, 2]\n"
        # CPU tensors handed to the CUDA implementation: all that a machine without a GPU can do
        "cuda = torch._C.DispatchKeySet(torch._C.DispatchKey.CUDA)\n"
        "try:\n"
        "    op = torch.ops.cuda_ext_example.my_add.default\n"
        "    op.redispatch(cuda, torch.ones(2), torch.ones(2))\n"
        "except RuntimeError as error:\n"
        "    print(error)\n"
    )
    said = subprocess.check_output(
        [sys.executable, "-c", check],
        text=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path / "site")},
    )
    assert said.startswith("my_add: this build of cuda_ext_example has no CUDA code; install a")


def what_it_requires(project: Path, site: Path) -> dict[str, str]:
    """Paths to the packages that the project's build requires and to their programs, taken from here: pip would
    download gigabytes."""
    (site / "bin").mkdir(parents=True)
    requires = tomllib.loads((project / "pyproject.toml").read_text())["build-system"]["requires"]
    for requirement in map(Requirement, requires):
        if requirement.marker is None or requirement.marker.evaluate():
            found = distribution(requirement.name)
            assert requirement.specifier.contains(found.version)
            if requirement.name == "opwright":  # its files here are one line that names its folder
                (site / "opwright").symlink_to(ENGINE / "opwright")
                continue
            files = [file for file in found.files or () if file.parent.name == "bin"]
            programs = {f"bin/{file.name}": file for file in files if file.parts[0] == ".."}
            names = {file.parts[0] for file in found.files or ()} - {".."}
            for name, file in {**programs, **dict(zip(names, names, strict=True))}.items():
                (site / name).symlink_to(Path(str(found.locate_file(file))).resolve())
    return {"PYTHONPATH": str(site), "PATH": f"{site}/bin:/usr/bin:/bin"}


def test_sdist_builds_the_same_wheel(source: Path, tmp_path: Path):
    """The sdist holds all that a wheel needs: made from it alone, with nothing but what pyproject.toml requires."""
    build = [sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", str(tmp_path)]
    subprocess.run([*build, str(source)], check=True, capture_output=True)
    (sdist,) = tmp_path.glob("*.tar.gz")
    (tmp_path / "unpacked").mkdir()  # by tar: Python's ways differ between its versions
    subprocess.run(["tar", "-xf", sdist, "-C", tmp_path / "unpacked"], check=True)
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    hook = f"from setuptools import build_meta; build_meta.build_wheel({str(tmp_path)!r})"
    done = subprocess.run(
        [sys.executable, "-S", "-c", hook],
        cwd=unpacked,
        env=os.environ | {"OPWRIGHT_CUDA": "off"} | what_it_requires(unpacked, tmp_path / "site"),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    with tarfile.open(sdist) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    assert {"setup.py", "LICENSE", "csrc/add.h", "csrc/rms_norm_forward.cu"} <= names
    assert "ci/matrix.toml" not in names, "what it says of tests would build wheels anew"
    assert not any(name.endswith(".so") for name in names)
    packed = zipfile.ZipFile(wheel).namelist()
    assert "cuda_ext_example/libcuda_ext_example.so" in packed
    assert "cuda_ext_example/py.typed" in packed
    assert "cuda_ext_example/_opwright/registration.py" in packed

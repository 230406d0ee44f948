"""Tests that the sdist contains everything that a wheel needs."""

import os
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

opwright = pytest.importorskip("opwright", reason="needs opwright, which `make install` brings")
ROOT = Path(__file__).parent.parent
ENGINE = Path(opwright.__file__).parents[1]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a copy of the tracked files: no build folder, no library."""
    copy = tmp_path_factory.mktemp("source")
    listed = subprocess.check_output(["git", "ls-files", "-z", "--cached"], cwd=ROOT, text=True)
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file() and not name.startswith(("tools/", "tests/", "docs/")):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            (copy / name).write_bytes((ROOT / name).read_bytes())
    return copy


def what_it_requires(project: Path, site: Path) -> dict[str, str]:
    """Links the packages that the project's build requires, and their programs, from this environment, as pip would
    download gigabytes. Returns variables with their paths."""
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
    """The wheel is built from the sdist alone, with nothing but what pyproject.toml requires."""
    build = [sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", str(tmp_path)]
    subprocess.run([*build, str(source)], check=True, capture_output=True)
    (sdist,) = tmp_path.glob("*.tar.gz")
    (tmp_path / "unpacked").mkdir()  # by tar, as Python's unpacking differs between versions
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
    assert {"setup.py", "LICENSE", "csrc/add.h", "csrc/rms_norm.h"} <= names
    assert "ci/matrix.toml" not in names, "what it says of tests would build wheels anew"
    assert not any(name.endswith(".so") for name in names)
    packed = zipfile.ZipFile(wheel).namelist()
    assert "cuda_ext_example/libcuda_ext_example.so" in packed
    assert "cuda_ext_example/py.typed" in packed
    assert "cuda_ext_example/_opwright/registration.py" in packed

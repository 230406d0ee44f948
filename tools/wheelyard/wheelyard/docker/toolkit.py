"""Assembles a CUDA toolkit from NVIDIA's packages on PyPI, pinned with hashes.

The compilers are those for this machine, headers and static runtime those for the build's CPU.

    python toolkit.py --cuda 12.9 --target x86_64 FOLDER
"""

import argparse
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PINS = Path(__file__).parent / "toolkits"
COMPLETE = ".complete"  # written last, with the pins: a folder without it is made anew


def versions() -> list[str]:
    return sorted(lock.stem for lock in PINS.glob("*.lock"))


def packages(pins: Path, machine: str, folder: Path) -> Path:
    """Installs the pinned packages for `machine` into `folder`; returns where their files are."""
    tags = [f"manylinux_2_{minor}_{machine}" for minor in (28, 27, 17, 12)]
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
    ]
    command += [
        "--require-hashes",
        "--only-binary=:all:",
        "--target",
        str(folder),
        "--requirement",
        str(pins),
    ]
    command += [
        f"--platform={tag}"
        for tag in [*tags, f"manylinux2014_{machine}", f"manylinux2010_{machine}"]
    ]
    subprocess.run(command, check=True)
    return folder / "nvidia"


def adapt_for_clang(toolkit: Path, of_13: Path) -> None:
    """clang calls fatbinary, which PyPI has for CUDA 13 only: a wrapper joins the two."""
    shutil.copy(of_13 / "cu13/bin/fatbinary", toolkit / "bin/fatbinary-13")
    shutil.copy(PINS / "fatbinary.sh", toolkit / "bin/fatbinary")
    # clang 16 includes this header of cuRAND wherever CUDA is compiled; nothing uses it.
    (toolkit / "include/curand_mtgp32_kernel.h").touch()


def assemble(cuda: str, machine: str, destination: Path) -> None:
    pins = PINS / f"{cuda}.lock"
    if not pins.is_file():
        sys.exit(f"error: there is no toolkit {cuda}; choose one of {', '.join(versions())}")
    recipe = pins.read_text() + machine
    stamp = destination / COMPLETE
    if stamp.is_file() and stamp.read_text() == recipe:
        return
    shutil.rmtree(destination, ignore_errors=True)
    destination.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as scratch:
        here = packages(pins, platform.machine(), Path(scratch) / "here")
        there = (
            here
            if machine == platform.machine()
            else packages(pins, machine, Path(scratch) / "there")
        )
        own = ["cu13"] if cuda.startswith("13") else ["cuda_nvcc", "cuda_runtime", "cuda_cccl"]
        for name, source in (("bin", here), ("nvvm", here), ("include", there), ("lib", there)):
            for package in own:
                if (source / package / name).is_dir():
                    shutil.copytree(source / package / name, destination / name, dirs_exist_ok=True)
        if not cuda.startswith("13"):
            adapt_for_clang(destination, here)
    (destination / "lib64").symlink_to("lib")  # where nvcc looks
    for tool in (destination / "bin").iterdir():
        tool.chmod(0o755)
    stamp.write_text(recipe)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--cuda", required=True, help=f"the toolkit's version: {', '.join(versions())}"
    )
    parser.add_argument("--target", default=platform.machine(), choices=["x86_64", "aarch64"])
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    assemble(arguments.cuda, arguments.target, arguments.folder)


if __name__ == "__main__":
    main()

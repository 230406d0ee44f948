"""Assembles a CUDA toolkit from NVIDIA's packages on PyPI, pinned with hashes.

The compilers are those for this machine, headers and static runtime those for the build's CPU. PyPI has no nvcc 12:
that of 12.4 is in Debian's package nvidia-cuda-toolkit, pinned with hashes too.

    python toolkit.py --cuda 12.9 --target x86_64 FOLDER
    python toolkit.py --cuda 12.4 --debian MIRROR FOLDER
"""

import argparse
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PINS = Path(__file__).parent / "toolkits"
CALLED = ("bin2c", "cudafe++", "fatbinary", "nvlink")  # called by nvcc; ptxas is PyPI's
COMPLETE = ".complete"  # written last, with the pins: a folder without it is made anew


def versions() -> list[str]:
    return sorted(lock.stem for lock in PINS.glob("*.lock") if not lock.stem.endswith("-static"))


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
    """Adapts a toolkit for clang, which calls fatbinary; PyPI has that for CUDA 13 only, so a wrapper joins the two."""
    shutil.copy(of_13 / "cu13/bin/fatbinary", toolkit / "bin/fatbinary-13")
    shutil.copy(PINS / "fatbinary.sh", toolkit / "bin/fatbinary")
    # clang 16 includes this header of cuRAND wherever CUDA is compiled; nothing uses it.
    (toolkit / "include/curand_mtgp32_kernel.h").touch()


def debian_nvcc(deb: Path, mirror: str, folder: Path) -> Path:
    """Downloads Debian's package by its hash, and unpacks it; returns where its files are."""
    architecture = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
    lines = map(str.split, deb.read_text().splitlines())
    sha256, path = next(line for line in lines if line[1].endswith(f"_{architecture}.deb"))
    url, file = f"{mirror.rstrip('/')}/{path}", folder / "nvcc.deb"
    fetch = ["/usr/lib/apt/apt-helper", "-qq", "download-file", url, str(file), f"SHA256:{sha256}"]
    if subprocess.run(fetch).returncode != 0:
        sys.exit(f"error: {url} is not there, or is not the file that this wheelyard pins")
    subprocess.run(["dpkg-deb", "--extract", file, folder / "nvcc"], check=True)
    return folder / "nvcc/usr"


def add_nvcc(toolkit: Path, debian: Path) -> None:
    """Puts Debian's nvcc beside the programs that it calls. Debian's usr/bin/nvcc is a script that knows Debian's
    folders."""
    own = debian / "lib/nvidia-cuda-toolkit/bin"
    shutil.copytree(own / "crt", toolkit / "bin/crt")
    for program in (own / "nvcc", own / "cicc", *(debian / "bin" / name for name in CALLED)):
        shutil.copy(program, toolkit / "bin")
    shutil.copy(PINS / "nvcc.profile", toolkit / "bin")


def assemble(cuda: str, machine: str, mirror: str, destination: Path) -> None:
    pins, static = PINS / f"{cuda}.lock", PINS / f"{cuda}-static.lock"
    deb = PINS / f"{cuda}.deb"  # exists if PyPI has no nvcc, but Debian has
    if not pins.is_file():
        sys.exit(f"error: there is no toolkit {cuda}; choose one of {', '.join(versions())}")
    if deb.is_file() and not mirror:
        sys.exit(
            f"error: PyPI has no nvcc of CUDA {cuda}, but Debian has: its mirror must be in this machine's apt settings"
        )
    also = (file.read_text() for file in (static, deb) if file.is_file())
    recipe = "".join([pins.read_text(), machine, *also])
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
        of_12 = ["cuda_nvcc", "cuda_runtime", "cuda_cccl", "cuda_profiler_api"]
        own = ["cu13"] if cuda.startswith("13") else of_12
        for name, source in (("bin", here), ("nvvm", here), ("include", there), ("lib", there)):
            for package in own:
                if (source / package / name).is_dir():
                    shutil.copytree(source / package / name, destination / name, dirs_exist_ok=True)
        if static.is_file():
            libraries = packages(static, machine, Path(scratch) / "static") / "cuda_runtime/lib"
            for library in libraries.glob("*.a"):
                shutil.copy(library, destination / "lib")
            # nvcc always links libcudadevrt. That of 12.9 is too new for its nvlink; only kernels that launch kernels
            # need it.
            (destination / "lib/libcudadevrt.a").write_bytes(b"!<arch>\n")
        if deb.is_file():
            add_nvcc(destination, debian_nvcc(deb, mirror, Path(scratch)))
        elif not cuda.startswith("13"):
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
    parser.add_argument(
        "--debian", default="", metavar="MIRROR", help="where Debian's packages are"
    )
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    assemble(arguments.cuda, arguments.target, arguments.debian, arguments.folder)


if __name__ == "__main__":
    main()

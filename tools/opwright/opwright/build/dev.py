"""The kernel developer's loop: builds for this machine's GPU behind an editable install.

python -m scripts.builder dev                          build once (`make dev`)
python -m scripts.builder dev --watch tests/package    build and test at each save (`make watch`)
"""

import argparse
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from scripts.builder import library, machine
from scripts.builder.toolchain import PACKAGE, ROOT, VERSION, BuildError

FOLDER = "build/dev"  # apart from other builds, whose targets differ
WITHOUT_GPU = "8.0"
WATCHED = ("csrc/ops", "csrc/kernels", "csrc/torch", "csrc/CMakeLists.txt", "csrc/cuda.cmake")
POLL_SECONDS = 0.2


def choose_targets(named: str | None) -> str:
    """GPU targets: those named, or this machine's, or else one that all but the oldest run."""
    if named or os.environ.get("TORCH_CUDA_ARCH_LIST"):
        return named or os.environ["TORCH_CUDA_ARCH_LIST"]
    if found := machine.gpu_targets():
        return ";".join(found)
    print(f"no GPU is seen here (nvidia-smi): building for {WITHOUT_GPU}; GPU=9.0 names another")
    return WITHOUT_GPU


def build() -> None:
    """Brings the installed library up to date; pip runs the first time only."""
    start = time.perf_counter()
    if _is_installed():
        built = library.build(library.build_folder(), VERSION)
        _replace(built, ROOT / PACKAGE / library.LIBRARY)
    else:
        print("installing the package, editable")
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        done = subprocess.run([*pip, "--no-build-isolation", "--editable", "."], cwd=ROOT)
        if done.returncode != 0:
            raise BuildError("pip could not install the package; its output is above")
    print(f"up to date after {time.perf_counter() - start:.2f} s")


def _is_installed() -> bool:
    for found in importlib.metadata.distributions(name=PACKAGE):
        origin = json.loads(found.read_text("direct_url.json") or "{}")
        if origin.get("url") == ROOT.as_uri() and origin.get("dir_info", {}).get("editable"):
            return True
    return False


def _replace(built: Path, installed: Path) -> None:
    """In one step: a program that has the old library open keeps it."""
    if installed.is_file():
        old, new = installed.stat(), built.stat()
        if (old.st_size, old.st_mtime_ns) == (new.st_size, new.st_mtime_ns):
            return
    copy = installed.with_suffix(".new")
    shutil.copy2(built, copy)
    copy.replace(installed)


def watch(tests: list[str]) -> None:
    """Builds and tests now, and after each save."""
    seen: dict[Path, int] = {}
    while True:
        now = _saved_times(tests)
        if now == seen:
            time.sleep(POLL_SECONDS)
            continue
        names = [str(file.relative_to(ROOT)) for file in now if now[file] != seen.get(file)]
        if seen:
            print(f"\n{', '.join(names) or 'a file was removed'}")
        seen = now
        try:
            build()
        except BuildError as error:
            print(error)
        else:
            subprocess.run([sys.executable, "-m", "pytest", "-q", *tests], cwd=ROOT)
        print("watching; Ctrl-C ends it", flush=True)


def _saved_times(tests: list[str]) -> dict[Path, int]:
    times = {}
    for name in (*WATCHED, PACKAGE, *(test.split("::")[0] for test in tests)):
        top = ROOT / name
        for file in top.rglob("*") if top.is_dir() else [top]:
            if file.suffix not in (".so", ".new", ".pyc") and file.is_file():
                times[file] = file.stat().st_mtime_ns
    return times


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--gpu", help='GPU targets, such as 9.0 or "8.0;9.0"')
    parser.add_argument("--watch", nargs="+", metavar="TEST", help="these tests, at each save")


def run(arguments: argparse.Namespace) -> int:
    os.environ["TORCH_CUDA_ARCH_LIST"] = choose_targets(arguments.gpu)
    os.environ.setdefault("CUDA_EXT_CUDA", "on")
    os.environ.setdefault("CUDA_EXT_BUILD_FOLDER", FOLDER)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    try:
        if arguments.watch:
            watch(arguments.watch)
        else:
            build()
    except KeyboardInterrupt:
        print()
    return 0

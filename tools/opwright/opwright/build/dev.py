"""The kernel developer's loop: builds for this machine's GPU in an editable install.

opwright dev                          build once
opwright dev --watch tests/package    build and test at each save
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

from opwright.build import library, machine
from opwright.build.project import BuildError, Project, project_here
from opwright.build.runtime import RUNTIME, copy_runtime

FOLDER = "build/dev"  # differs from other builds' folders, because their targets differ
WITHOUT_GPU = "8.0"
POLL_SECONDS = 0.2


def choose_targets(named: str | None) -> str:
    """Returns the named GPU targets, or this machine's, or else WITHOUT_GPU."""
    if named or os.environ.get("TORCH_CUDA_ARCH_LIST"):
        return named or os.environ["TORCH_CUDA_ARCH_LIST"]
    if found := machine.gpu_targets():
        return ";".join(found)
    print(f"no GPU is seen here (nvidia-smi): building for {WITHOUT_GPU}; --gpu 9.0 names another")
    return WITHOUT_GPU


def build(project: Project) -> None:
    """Brings the installed library up to date; pip runs only the first time."""
    start = time.perf_counter()
    if _is_installed(project):
        _replace(library.build(project), project.package / project.library)
        copy_runtime(project.package)
    else:
        print("installing the package, editable")
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        done = subprocess.run([*pip, "--no-build-isolation", "--editable", "."], cwd=project.root)
        if done.returncode != 0:
            raise BuildError("pip could not install the package; its output is above")
    print(f"up to date after {time.perf_counter() - start:.2f} s")


def _is_installed(project: Project) -> bool:
    for found in importlib.metadata.distributions(name=project.name):
        origin = json.loads(found.read_text("direct_url.json") or "{}")
        if origin.get("url") == project.root.as_uri() and origin.get("dir_info", {}).get(
            "editable"
        ):
            return True
    return False


def _replace(built: Path, installed: Path) -> None:
    """Replaces the library in one step, so that a program that has the old one open keeps it."""
    if installed.is_file():
        old, new = installed.stat(), built.stat()
        if (old.st_size, old.st_mtime_ns) == (new.st_size, new.st_mtime_ns):
            return
    copy = installed.with_suffix(".new")
    shutil.copy2(built, copy)
    copy.replace(installed)


def watch(project: Project, tests: list[str]) -> None:
    """Builds and tests now, and after each save."""
    seen: dict[Path, int] = {}
    while True:
        try:
            now = _saved_times(project, tests)
        except FileNotFoundError:  # an editor replaces a file
            now = seen
        if now == seen:
            time.sleep(POLL_SECONDS)
            continue
        names = [_name(project, file) for file in now if now[file] != seen.get(file)]
        if seen:
            print(f"\n{', '.join(names) or 'a file was removed'}")
        seen = now
        try:
            build(project)
        except BuildError as error:
            print(error)
        else:
            subprocess.run([sys.executable, "-m", "pytest", "-q", *tests], cwd=project.root)
        print("watching; Ctrl-C ends it", flush=True)


def _name(project: Project, file: Path) -> str:
    return str(file.relative_to(project.root) if file.is_relative_to(project.root) else file)


def _saved_times(project: Project, tests: list[str]) -> dict[Path, int]:
    """Returns when each file of the sources, the package, the tests and opwright was saved."""
    times = {}
    names = [project.sources, project.name, *(test.split("::")[0] for test in tests)]
    for top in (*(project.root / name for name in names), library.ENGINE):
        for file in top.rglob("*") if top.is_dir() else [top]:
            if file.parent.name == RUNTIME or file.suffix in (".so", ".new", ".pyc"):
                continue
            if file.is_file():
                times[file] = file.stat().st_mtime_ns
    return times


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--gpu", help='GPU targets, such as 9.0 or "8.0;9.0"')
    parser.add_argument("--watch", nargs="+", metavar="TEST", help="these tests, at each save")


def run(arguments: argparse.Namespace) -> int:
    os.environ["TORCH_CUDA_ARCH_LIST"] = choose_targets(arguments.gpu)
    os.environ.setdefault("OPWRIGHT_CUDA", "on")
    os.environ.setdefault("OPWRIGHT_BUILD_FOLDER", FOLDER)
    project = project_here()
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    try:
        if arguments.watch:
            watch(project, arguments.watch)
        else:
            build(project)
    except KeyboardInterrupt:
        print()
    return 0

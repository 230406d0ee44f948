"""Builds the C++ library with CMake and Ninja in a folder that is kept, so that a change recompiles only what it
affects. A change of compilers, flags, toolkit or torch starts the folder anew."""

import os
import platform
import re
import shlex
import shutil
import subprocess
from pathlib import Path

from opwright.build import machine, toolchain
from opwright.build.project import BuildError, Project

ENGINE = Path(__file__).resolve().parents[1]  # headers, sources and CMake's files
# Environment variables that CMake reads only the first time, or that nvcc itself reads.
FLAGS = ("CXXFLAGS", "CUDAFLAGS", "LDFLAGS", "NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS")
MADE_WITH = "made with "
RECIPE = "recipe.txt"  # this file in a build folder lists the programs and arguments that made it
# The macros that make an op, and the only files that the build looks for each in.
MACROS = {
    re.compile(r"^[ \t]*OPWRIGHT_(ELEMENTWISE|ROWS)\(", re.MULTILINE): (".h",),
    re.compile(r"^[ \t]*OPWRIGHT_KERNEL\(", re.MULTILINE): (".cu", ".cpp", ".h", ".cuh", ".hpp"),
}
CODE = re.compile(r"\.(c|h)(u|uh|c|h|pp|xx|\+\+)?", re.IGNORECASE)
UNUSABLE = ';"$\\[<|\n'  # in a path: CMake or Ninja fails with each, and names something else
CUDA_SOURCES = 4  # how many are likely to be compiled at once; see machine.nvcc_threads


def build_folder(project: Project) -> Path:
    """Returns OPWRIGHT_BUILD_FOLDER, or one folder for each CPU and compiler."""
    default = f"build/extension-{toolchain.target_machine()}-{toolchain.cuda_compiler()}"
    return project.build_folder(default)


def build(project: Project, target: str | None = None) -> Path:
    """Builds `target`, by default the library, and returns the library's path."""
    folder = build_folder(project)
    compiler = toolchain.cuda_compiler()
    sources = project.root / project.sources
    if not sources.is_dir():
        raise BuildError(f"{sources} does not exist; OpExtension names the folder of the sources")
    for path in (sources, folder, ENGINE):
        _check_path(path)
    _check_suffixes(sources)
    configure = [
        *("cmake", "-S", str(ENGINE / "cmake"), "-B", str(folder), "-G", "Ninja"),
        f"-DOPWRIGHT_NAME={project.name}",
        f"-DOPWRIGHT_CSRC={sources}",
        f"-DOPWRIGHT_VERSION={project.version}",
        f"-DOPWRIGHT_COMPILER={compiler}",
        f"-DTORCH_INCLUDE_DIR={toolchain.torch_include()}",
        *_cuda_arguments(project, compiler),
        *_compiler_arguments(compiler, toolchain.target_machine()),
        f"-DOPWRIGHT_LAUNCHER={';'.join(toolchain.cache_launcher(project.root))}",
    ]
    try:
        _configure(folder, configure)
        jobs = toolchain.max_jobs() or machine.default_jobs(_threads(configure))
        target = target or project.name
        command = ["cmake", "--build", ".", "--target", target, "-j", str(jobs)]
        subprocess.run(command, check=True, cwd=folder)
    except FileNotFoundError:
        raise BuildError("cmake is not installed; pip install cmake ninja") from None
    except subprocess.CalledProcessError as failed:
        raise BuildError(f"{' '.join(failed.cmd[:2])} failed; its output is above") from None
    return folder / "lib" / project.library


def _check_path(path: Path) -> None:
    found = [character for character in UNUSABLE if character in str(path)]
    if found:
        raise BuildError(
            f"CMake cannot build with {' or '.join(map(repr, found))} in a path, and this one has it: {path}; move it "
            "to another folder"
        )


def _check_suffixes(sources: Path) -> None:
    """Refuses an op in a file that the build does not look into, and would leave out without a word."""
    for file in sorted(sources.rglob("[!.]*")):
        if not (file.is_file() and CODE.fullmatch(file.suffix)):
            continue
        text = file.read_text(errors="replace")
        for macro, suffixes in MACROS.items():
            if (found := macro.search(text)) and file.suffix not in suffixes:
                raise BuildError(
                    f"{file}: the build looks for {found[0].strip()}...) in {' and '.join(suffixes[:2])} files alone; "
                    "move it into one, or rename this file"
                )


def _configure(folder: Path, command: list[str]) -> None:
    """Runs CMake, unless it made this folder with the same arguments and programs.

    A folder made with other programs is deleted, because Ninja notices a changed command but not a changed
    program at the same path.
    """
    stamp = folder / RECIPE
    programs = _identities(command)
    known = stamp.read_text().splitlines() if stamp.is_file() else []
    if known == [*programs, *command]:
        return
    if folder.exists() and known[: len(programs)] != programs:
        print(f"{folder} was made with other compilers, flags or headers: building it anew")
        shutil.rmtree(folder)
    # CMake runs in the build folder: it tries to run programs that it compiled, and a shell that meets
    # another CPU's program may take its bytes for commands and leave files behind.
    folder.mkdir(parents=True, exist_ok=True)
    stamp.write_text("\n".join(programs))
    subprocess.run(command, check=True, cwd=folder)
    stamp.write_text("\n".join([*programs, *command]))


def changed_since(folder: Path) -> Path | None:
    """Returns the first program or header that changed since the folder was made."""
    for line in (folder / RECIPE).read_text().splitlines():
        if line.startswith(MADE_WITH):
            file = Path(line.removeprefix(MADE_WITH).rsplit(" ", 2)[0])
            if _identity(file) != line:
                return file
    return None


def _identity(file: Path) -> str:
    if not file.is_file():
        return f"{file} is missing"
    facts = file.stat()
    return f"{MADE_WITH}{file.resolve()} {facts.st_size} {facts.st_mtime_ns}"


def _identities(configure: list[str]) -> list[str]:
    """Returns the source folder, the flags, and the path, size and time of each program and header used."""
    given = dict(word[2:].split("=", 1) for word in configure if word.startswith("-D"))
    home = Path(given.get("OPWRIGHT_CUDA_HOME", "/nowhere"))
    cxx = given.get("CMAKE_CXX_COMPILER") or os.environ.get("CXX") or "c++"
    files = [home / name for name in ("bin/nvcc", "bin/ptxas", "include/cuda_runtime_api.h")]
    files += [
        Path(shutil.which(cxx) or cxx),
        Path(given["TORCH_INCLUDE_DIR"]) / "torch/headeronly/version.h",
    ]
    flags = [f"{name}={os.environ[name]}" for name in FLAGS if os.environ.get(name)]
    return [
        f"made from {given['OPWRIGHT_CSRC']}",
        *flags,
        *(_identity(file) for file in files if file.is_file()),
    ]


def _cuda_arguments(project: Project, compiler: str) -> list[str]:
    """Returns CMake's arguments for CUDA. OPWRIGHT_CUDA, never a visible GPU, decides whether it is on."""
    wanted = toolchain.choice("OPWRIGHT_CUDA", "auto", ("on", "off", "auto"))
    if wanted == "off":
        print("CUDA: off, as OPWRIGHT_CUDA says; this build will have no GPU code")
        return ["-DOPWRIGHT_CUDA=OFF"]
    if toolchain.is_rocm(toolchain.torch_include()):
        raise BuildError(
            "the torch here is a ROCm build, and the kernels are CUDA's, for NVIDIA's GPUs alone; "
            "OPWRIGHT_CUDA=off builds the ops for the CPU"
        )
    home = toolchain.cuda_home()
    tool = None if home is None else home / "bin" / ("nvcc" if compiler == "nvcc" else "ptxas")
    if home is None or tool is None or not tool.is_file():
        looked = (
            f"{tool} does not exist" if tool else "CUDA_HOME is not set and nvcc is not on PATH"
        )
        if wanted == "on":
            raise BuildError(
                f"OPWRIGHT_CUDA=on, but there is no CUDA compiler: {looked}; set CUDA_HOME"
            )
        print(f"CUDA: off, as there is no CUDA compiler ({looked}); there will be no GPU code")
        return ["-DOPWRIGHT_CUDA=OFF"]
    targets = toolchain.targets(project, home)
    print(f"CUDA: on, with {tool}, for {';'.join(targets)}")
    arguments = [
        "-DOPWRIGHT_CUDA=ON",
        f"-DOPWRIGHT_CUDA_HOME={home}",
        f"-DOPWRIGHT_TARGETS={';'.join(targets)}",
    ]
    if compiler == "nvcc":
        majors = {target.split(".")[0] for target in targets}
        threads = machine.nvcc_threads(CUDA_SOURCES, len(majors))
        arguments += [f"-DCMAKE_CUDA_COMPILER={tool}", f"-DOPWRIGHT_THREADS={threads}"]
        is_cross = toolchain.target_machine() != platform.machine()
        if not is_cross and (host := toolchain.host_compiler()):
            if not shutil.which(host):
                raise BuildError(
                    f"c++ is newer than this nvcc supports; sudo apt-get install {host}, or set OPWRIGHT_CUDA=off to "
                    "build without GPU code"
                )
            print(f"C++: {host}, because c++ is newer than this nvcc supports")
            arguments.append(f"-DCMAKE_CXX_COMPILER={host}")
    return arguments


def _threads(configure: list[str]) -> int:
    found = re.search(r"-DOPWRIGHT_THREADS=(\d+)", " ".join(configure))
    return int(found.group(1)) if found else 1


def _compiler_arguments(compiler: str, target: str) -> list[str]:
    """Returns CMake's arguments for the C++ compiler, and for a CPU other than this machine's."""
    is_cross = target != platform.machine()
    triple = f"{target}-linux-gnu"
    arguments = []
    if compiler == "clang":
        _check_compiler("clang", "clang++")
        arguments.append(f"-DCMAKE_CXX_COMPILER={os.environ.get('CXX', 'clang++')}")
        if is_cross:
            arguments.append(f"-DCMAKE_CXX_COMPILER_TARGET={triple}")
    elif is_cross:
        cross = shutil.which(f"{triple}-g++")
        if cross is None:
            package = f"g++-{triple.replace('_', '-')}"
            raise BuildError(
                f"{triple}-g++ is needed to build for {target}; apt-get install {package}"
            )
        arguments.append(f"-DCMAKE_CXX_COMPILER={cross}")
    else:
        _check_compiler("g++", "c++", "g++", "clang++")
    if is_cross:
        arguments += ["-DCMAKE_SYSTEM_NAME=Linux", f"-DCMAKE_SYSTEM_PROCESSOR={target}"]
    return arguments


def _check_compiler(package: str, *usual: str) -> None:
    """Says in one line that there is no C++ compiler, because CMake takes many for it."""
    given = shlex.split(os.environ.get("CXX") or "")
    if given and not shutil.which(given[0]):
        raise BuildError(f"CXX names {given[0]}, which is not on PATH; install it, or unset CXX")
    if not given and not any(map(shutil.which, usual)):
        raise BuildError(
            f"no C++ compiler is on PATH; apt-get install {package}, or name one by CXX"
        )

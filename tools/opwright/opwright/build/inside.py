"""Shows the code that the compilers made from an op, and the symbols that the built library needs.

opwright inside                         PTX and SASS of the built library, into build/inside
opwright inside csrc/add.h --gpu 8.0    PTX of one source
opwright inside --symbols               the libraries and symbols that the built library needs and defines
"""

import argparse
import os
import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

from opwright.build.library import ENGINE
from opwright.build.project import BuildError, Project, project_here
from opwright.build.toolchain import cuda_home

FLAGS = ["-std=c++17", "-DOPWRIGHT_WITH_CUDA", "--expt-relaxed-constexpr"]


def ptx_of(project: Project, source: Path, gpu: str) -> str:
    """Compiles one source for one GPU; a header is compiled as that of an elementwise op."""
    home = cuda_home()
    if home is None:
        raise BuildError("there is no nvcc; put it on PATH, or set CUDA_HOME")
    if not source.is_file():
        raise BuildError(f"{source} does not exist; name a .h or .cu file of csrc/")
    folder = _folder(project)
    unit = source
    if source.suffix == ".h":
        unit = folder / f"{source.stem}.cu"
        unit.write_text(f'#include "opwright/elementwise.cuh"\n#include "{source.resolve()}"\n')
    ptx = folder / f"{source.stem}.ptx"
    includes = [f"-I{project.root / project.sources}", f"-I{ENGINE / 'include'}"]
    target = f"--gpu-architecture=compute_{gpu.replace('.', '')}"
    command: list[str | Path] = [
        home / "bin/nvcc",
        "--ptx",
        *includes,
        *FLAGS,
        target,
        "-o",
        ptx,
        unit,
    ]
    if subprocess.run(command).returncode != 0:
        raise BuildError(f"nvcc did not compile {source}")
    return f"{_shown(ptx)}: {len(re.findall('[.]entry', ptx.read_text()))} kernels"


def device_code(project: Project, library: Path) -> str:
    """Writes the library's PTX and SASS into files, and lists its code."""
    program = _cuobjdump()
    listed = _output(program, "--list-elf", "--list-ptx", library)
    lines = [listed.rstrip()]
    for kind in ("ptx", "sass"):
        file = _folder(project) / f"{library.stem}.{kind}"
        text = _output(program, f"--dump-{kind}", library)
        file.write_text(_output("c++filt", given=text) if kind == "sass" else text)
        lines.append(f"{_shown(file)}: {len(text.splitlines())} lines")
    return "\n".join(lines)


def symbols(library: Path) -> str:
    dynamic = _output("readelf", "--dynamic", "--wide", library)
    needed = [f"needs {name}" for name in re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)]
    table = _output("nm", "--dynamic", "--demangle", "--with-symbol-versions", library)
    return "\n".join([*needed, table.rstrip()])


def _folder(project: Project) -> Path:
    folder = project.root / "build/inside"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _shown(file: Path) -> str:
    return os.path.relpath(file)


def _cuobjdump() -> str:
    """Finds NVIDIA's program in the toolkit, in this Python's package nvidia-cuda-cuobjdump, or on PATH."""
    home = cuda_home()
    beside = Path(sysconfig.get_path("purelib"), "nvidia/cu13/bin")
    path = os.pathsep.join(
        [str(home / "bin") if home else "", str(beside), os.environ.get("PATH", "")]
    )
    program = shutil.which("cuobjdump", path=path)
    if program is None:
        raise BuildError("there is no cuobjdump; pip install nvidia-cuda-cuobjdump")
    return program


def _output(*command: str | Path, given: str | None = None) -> str:
    try:
        done = subprocess.run(command, input=given, capture_output=True, text=True)
    except FileNotFoundError:
        raise BuildError(f"{command[0]} is not installed; apt-get install binutils") from None
    if done.returncode != 0:
        raise BuildError(f"{command[0]}: {done.stderr.strip()}")
    return done.stdout


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", type=Path, nargs="?", help="a .h or .cu source, or a library; else the built one"
    )
    parser.add_argument("--gpu", default="9.0", help="compile a source for this one (9.0)")
    parser.add_argument(
        "--symbols", action="store_true", help="what the library needs and defines instead"
    )


def run(arguments: argparse.Namespace) -> int:
    project = project_here()
    file = arguments.file or project.package / project.library
    if file.suffix in (".h", ".cu"):
        print(ptx_of(project, file, arguments.gpu))
    elif not file.is_file():
        raise BuildError(f"{file} does not exist; build it first: `opwright dev`")
    else:
        print(symbols(file) if arguments.symbols else device_code(project, file))
    return 0

"""cuobjdump -all, as the reference for the GPU targets of each file."""

import platform
import re
import subprocess
import sysconfig
import tempfile
import zipfile
from fnmatch import fnmatchcase
from importlib.metadata import version
from pathlib import Path
from typing import Any

from validation.corpus.reference import Facts, Reference, starts_with

CUOBJDUMP = Path(sysconfig.get_path("purelib")) / "nvidia/cu13/bin/cuobjdump"
MAGICS = (b"\x7fELF", b"!<arch>\n", b"\x50\xed\x55\xba")  # ELF file, archive, lone fat binary
EM_CUDA = (190).to_bytes(2, "little")


def by_target(target: str) -> tuple[int, str]:
    return int(target.rstrip("af")), target


def is_toolbox(file_name: str) -> bool:
    return fnmatchcase(file_name, f"triton-3.5.0-*{platform.machine()}.whl")


def older_cuobjdump(folder: Path) -> Path:
    """Returns CUDA 12.8's cuobjdump, which a wheel of the corpus contains; CUDA 13's gives up on
    old cubins."""
    tool = folder / "cuobjdump-12.8"
    if not tool.exists():
        wheel = next(file for file in folder.iterdir() if is_toolbox(file.name))
        with zipfile.ZipFile(wheel) as members:
            tool.write_bytes(members.read("triton/backends/nvidia/bin/cuobjdump"))
        tool.chmod(0o755)
    return tool


def targets_in(output: str) -> dict[str, list[str]]:
    kinds = {"elf": "sass", "ptx": "ptx"}
    found: dict[str, set[str]] = {}
    kind = ""
    for line in output.splitlines():
        if line.startswith("Fatbin "):
            word = line.split()[1]
            kind = kinds.get(word, word)
        elif line.startswith("arch = sm_"):
            found.setdefault(kind, set()).add(line.removeprefix("arch = sm_"))
    return {kind: sorted(targets, key=by_target) for kind, targets in found.items()}


def is_cubin(file: Path) -> bool:
    with file.open("rb") as stream:
        return stream.read(20)[18:] == EM_CUDA


def ask_cubin(file: Path) -> dict[str, Any]:
    """Asks with -lelf, which has the target in a name: -all ignores a cubin outside any fat
    binary."""
    listed = subprocess.run([CUOBJDUMP, "-lelf", file], capture_output=True, text=True).stdout
    found = set(re.findall(r"\.sm_(\w+)\.cubin$", listed, re.MULTILINE))
    return {"sass": sorted(found, key=by_target)} if found else {}


def listing(file: Path, folder: Path) -> tuple[str, str]:
    """Returns what cuobjdump -all prints of a file, and its complaint if both versions give up."""
    for newest in (True, False):
        tool = CUOBJDUMP if newest else older_cuobjdump(folder)
        with tempfile.TemporaryFile("w+") as output:
            words = [tool, "-all", file]
            done = subprocess.run(words, stdout=output, stderr=subprocess.PIPE, text=True)
            if done.returncode in (0, 255):  # 255: there is no device code
                output.seek(0)
                return output.read(), ""
    return "", done.stderr.strip()


def ask_file(file: Path, folder: Path) -> dict[str, Any]:
    if is_cubin(file):
        return ask_cubin(file)
    printed, complaint = listing(file, folder)
    return {"no answer": complaint} if complaint else targets_in(printed)


def ask(wheel: Path, tree: Path) -> Facts:
    facts = {}
    for file in sorted(path for path in tree.rglob("*") if path.is_file()):
        if any(starts_with(file, magic) for magic in MAGICS):
            found = ask_file(file, wheel.parent)
            if found:
                facts[file.relative_to(tree).as_posix()] = found
    return facts


def ours(item: Any, wheel: Path, theirs: Facts) -> Facts:  # noqa: ARG001
    facts: Facts = {}
    for library in item["elf"]:
        found: dict[str, set[str]] = {}
        for code in library["device_code"]:
            found.setdefault(code["kind"], set()).add(code["target"])
        if found:
            facts[library["path"]] = {
                kind: sorted(targets, key=by_target) for kind, targets in found.items()
            }
    return facts


CUOBJDUMP_ALL = Reference("cuobjdump", lambda: version("nvidia-cuda-cuobjdump"), ask, ours)
